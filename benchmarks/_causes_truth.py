"""The root causes of slow training that people write about, each as a program, with its cure as an edit by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One root cause. `program`: a script in a folder beside this file. `cure`: texts of it and what they are replaced
    by, each found once. `arguments`: what both are started with. `variables`: what the cured program is started with,
    where the cure is no edit.

    `findings`: ids of which one names the cause; () where no finding does, and only a fix could name it. `fixes`: ids
    of the fixes that make the cure; () where no switch can. `samples`: how many times as many samples a step of the
    cured program has. `seen`: threads in which people met it.
    """

    name: str
    program: str
    cure: tuple[tuple[str, str], ...] = ()
    findings: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    samples: float = 1.0
    seen: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        return HERE / self.program

    def cured(self) -> str:
        """The program's text with the cure made. Raises `ValueError` where a text of the cure is not found once."""
        text = self.file.read_text(encoding="utf-8")
        for old, new in self.cure:
            if text.count(old) != 1:
                raise ValueError(f"{self.name}: {text.count(old)} times in {self.program}: {old!r}")
            text = text.replace(old, new)
        return text

    def fingerprint(self) -> str:
        """Changes with whatever would make earlier figures others."""
        given = f"{dict(self.variables)}{' '.join(self.arguments)}"
        return hashlib.sha256(f"{self.file.read_text()}{self.cured()}{given}".encode()).hexdigest()[:16]


_MERGED = '''def merged(groups):
    """Groups by what they have in common."""
    alike = {}
    for group in groups:
        alike.setdefault((group["lr"], group["weight_decay"]), []).extend(group["params"])
    return [{"params": params, "lr": lr, "weight_decay": decay} for (lr, decay), params in alike.items()]


def main() -> None:
'''

CAUSES = (
    Cause(
        name="one process loads",
        program="planted/features_in_fetch.py",
        cure=(("batch_size=8, shuffle=True)", "batch_size=8, shuffle=True, num_workers=2)"),),
        findings=("slow-fetch", "too-few-workers"),
        fixes=("workers", "intra-op-threads", "cached-samples"),
        seen=("open-edge-platform/geti#5958", "Deci-AI/super-gradients#1990"),
    ),
    Cause(
        name="a far storage",
        program="planted/slow_storage.py",
        cure=(('"--num-workers", type=int, default=2', '"--num-workers", type=int, default=8'),),
        findings=("workers-io-bound",),
        fixes=("workers", "cached-samples"),
        seen=("open-edge-platform/geti#5958",),
    ),
    Cause(
        name="workers start for every epoch",
        program="planted/short_epochs.py",
        cure=(('"worker_init_fn": open_archive}', '"worker_init_fn": open_archive, "persistent_workers": True}'),),
        findings=("slow-epoch-turn",),
        fixes=("persistent-workers", "no-workers", "cached-samples"),
        seen=("open-mmlab/mmhuman3d#233", "visionml/pytracking#374"),
    ),
    Cause(
        name="the same samples prepared again",
        program="workloads/same_samples.py",
        cure=(
            (
                "loader = DataLoader(Sounds(args.count, args.noise), batch_size",
                "sounds = Sounds(args.count, args.noise)\n"
                "    loader = DataLoader([sounds[index] for index in range(len(sounds))], batch_size",
            ),
        ),
        findings=("slow-fetch", "too-few-workers"),
        fixes=("cached-samples",),
        seen=("nerfstudio-project/gsplat#1062",),
    ),
    Cause(
        name="rows fetched one by one",
        program="workloads/small_rows.py",
        cure=(
            ("import DataLoader, TensorDataset", "import BatchSampler, DataLoader, RandomSampler, TensorDataset"),
            (
                "loader = DataLoader(data, batch_size=1024, shuffle=True, num_workers=args.num_workers)",
                "rows = BatchSampler(RandomSampler(data), 1024, drop_last=False)\n"
                "    loader = DataLoader(data, sampler=rows, batch_size=None, num_workers=args.num_workers)",
            ),
        ),
        findings=("slow-fetch", "slow-collate", "input-bound"),
        fixes=("batched-fetch",),
        seen=("huggingface/datasets#6279", "huggingface/lerobot#2549", "ContinualAI/avalanche#839"),
    ),
    Cause(
        name="batches wait for a slow one",
        program="workloads/uneven_batches.py",
        cure=(("num_workers=args.num_workers)", "num_workers=args.num_workers, in_order=False)"),),
        findings=("out-of-order-batches", "workers-io-bound"),
        fixes=("out-of-order", "workers"),
    ),
    Cause(
        name="large batches from a worker",
        program="planted/big_hand_over.py",
        cure=(('"--num-workers", type=int, default=1', '"--num-workers", type=int, default=0'),),
        findings=("slow-hand-over",),
        fixes=("no-workers", "cached-samples"),
        seen=("huggingface/lerobot#3406",),
    ),
    Cause(
        name="workers for what lies in memory",
        program="planted/workers_for_tensors.py",
        cure=(('"--num-workers", type=int, default=2', '"--num-workers", type=int, default=0'),),
        findings=("memory-data-needs-no-workers",),
        fixes=("no-workers", "batched-fetch"),
    ),
    Cause(
        name="rows as dictionaries of numbers",
        program="planted/dicts_of_numbers.py",
        cure=(
            (
                "loader = DataLoader(Rows(12800), batch_size=256, shuffle=True)",
                "def columns_of(rows):\n"
                "        values = torch.tensor([list(row.values()) for row in rows], dtype=torch.float64)\n"
                "        return dict(zip(COLUMNS, values.T, strict=True))\n\n"
                "    loader = DataLoader(Rows(12800), batch_size=256, shuffle=True, collate_fn=columns_of)",
            ),
        ),
        findings=("slow-collate",),
    ),
    Cause(
        name="cleaning up in every step",
        program="workloads/cleanup.py",
        cure=(("            gc.collect()  # the slow line\n", ""),),
        findings=("garbage-collection", "work-between-steps"),
        fixes=("cleanup-calls",),
        seen=("huggingface/peft#2894", "huggingface/diffusers#2563"),
    ),
    Cause(
        name="an optimizer's group for each tensor",
        program="workloads/group_a_tensor.py",
        cure=(("def main() -> None:\n", _MERGED), ("AdamW(groups(model)", "AdamW(merged(groups(model))")),
        findings=("slow-optimizer",),
        fixes=("merged-groups",),
        seen=("roboflow/rf-detr#1409",),
    ),
    Cause(
        name="an optimizer that loops in Python",
        program="workloads/many_tensors.py",
        cure=(("model.parameters(), lr=1e-4)", "model.parameters(), lr=1e-4, fused=True)"),),
        findings=("slow-optimizer",),
        fixes=("fused-optimizer",),
        seen=("LibreYOLO/libreyolo#761",),
    ),
    Cause(
        name="weights averaged one by one",
        program="planted/averaged_weights.py",
        cure=(
            (
                "        trained = dict(model.named_parameters())\n"
                "        for name, mean in kept.named_parameters():\n"
                "            mean.copy_(mean * decay + trained[name] * (1.0 - decay))  # the slow line\n",
                "        torch._foreach_lerp_(list(kept.parameters()), list(model.parameters()), 1.0 - decay)\n",
            ),
        ),
        findings=("averaged-weights", "work-between-steps"),
        seen=("lightly-ai/lightly#1899",),
    ),
    Cause(
        name="values read one by one",
        program="planted/item_loop.py",
        cure=(
            (
                "            for index in range(len(labels)):\n"
                "                correct += guesses[index].item() == labels[index].item()  # the slow line\n",
                "            correct += (guesses == labels).sum().item()\n",
            ),
        ),
        findings=("synchronising-calls", "work-between-steps"),
        seen=("meta-pytorch/torchtune#522", "facebookresearch/fairchem#2193"),
    ),
    Cause(
        name="checkpoints of every few steps",
        program="planted/checkpoint_often.py",
        cure=(('"--every", type=int, default=2', '"--every", type=int, default=200'),),
        findings=("work-between-steps",),
    ),
    Cause(
        name="a long evaluation",
        program="planted/long_evaluation.py",
        cure=(
            (
                '        print(f"epoch {epoch} loss',
                '        if epoch % 10 == 0:\n            print(f"epoch {epoch} loss',
            ),
        ),
        findings=("slow-epoch-turn",),
        seen=("ludwig-ai/ludwig#2856",),
    ),
    Cause(
        name="garbage of lists",
        program="workloads/garbage.py",
        cure=(
            ("import argparse\nimport json", "import argparse\nimport gc\nimport json"),
            (
                "    for _ in range(args.epochs):\n",
                "    gc.collect()\n    gc.freeze()\n    gc.disable()\n    for _ in range(args.epochs):\n",
            ),
        ),
        findings=("garbage-collection",),
        fixes=("gc-freeze",),
        seen=("deepspeedai/DeepSpeed#8451",),
    ),
    Cause(
        name="anomaly detection left on",
        program="causes/anomaly_detection.py",
        cure=(("    torch.autograd.set_detect_anomaly(True)\n", ""),),
        fixes=("debug-switches",),
        seen=("icon-lab/SynDiff#43", "Lightning-AI/pytorch-lightning#17359"),
    ),
    Cause(
        name="deterministic algorithms left on",
        program="causes/deterministic_algorithms.py",
        cure=(("    torch.use_deterministic_algorithms(True)\n", ""),),
        fixes=("debug-switches",),
        seen=("espnet/espnet#3041",),
    ),
    Cause(
        name="too many threads",
        program="workloads/too_many_threads.py",
        cure=(("torch.set_num_threads(16)", "torch.set_num_threads(1)"),),
        findings=("oversubscribed-threads", "python-bound", "work-between-steps"),
        fixes=("threads",),
        seen=("callummcdougall/ARENA_3.0#397",),
    ),
    Cause(
        name="dropout on a CPU",
        program="workloads/dropped_features.py",
        cure=(
            (
                "def main():",
                "def dropout(values, p, training, inplace):\n"
                "    bits = torch.empty(values.numel() // 4, dtype=torch.int64).random_(-(2**63), None)\n"
                "    keep = bits.view(torch.int16).view(values.shape) >= 0\n"
                "    return values * keep.to(values.dtype).mul_(2.0)\n\n\n"
                "nn.functional.dropout = dropout\n\n\n"
                "def main():",
            ),
        ),
        fixes=("quick-dropout",),
    ),
    Cause(
        name="distributions that check their values",
        program="workloads/policy_update.py",
        cure=(
            (
                "torch.set_num_threads(1)",
                "torch.set_num_threads(1)\n    torch.distributions.Distribution.set_default_validate_args(False)",
            ),
        ),
        findings=("work-between-steps", "python-bound"),
        fixes=("distribution-checks",),
        seen=("leggedrobotics/rsl_rl#69", "ray-project/ray#50440", "pytorch/tensordict#872"),
    ),
    Cause(
        name="gradients that vanish",
        program="planted/vanishing_gradients.py",
        cure=(("torch.manual_seed(0)", "torch.set_flush_denormal(True)\n    torch.manual_seed(0)"),),
        findings=("denormal-numbers",),
        fixes=("flush-denormal",),
    ),
    Cause(
        name="all rows padded to the longest",
        program="planted/padded_rows.py",
        cure=(
            (
                'answers = model(batch["input_ids"], batch["attention_mask"])',
                'longest = int(batch["attention_mask"].sum(1).max())\n'
                '            answers = model(batch["input_ids"][:, :longest], batch["attention_mask"][:, :longest])',
            ),
        ),
        findings=("padding",),
        fixes=("trimmed-padding",),
        seen=("huggingface/transformers#4842", "Lightning-AI/lit-llama#396"),
    ),
    Cause(
        name="convolutions, channels first",
        program="workloads/residual.py",
        cure=(
            ("    ).to(device)\n", "    ).to(device, memory_format=torch.channels_last)\n"),
            ("images.to(device), labels", "images.to(device, memory_format=torch.channels_last), labels"),
        ),
        findings=("compute-bound",),
        fixes=("channels-last",),
        seen=("pytorch/pytorch#82699",),
    ),
    Cause(
        name="products in full precision",
        program="workloads/float32_products.py",
        # As it is written, a step takes half a minute on two cores.
        arguments=("--width", "256", "--layers", "4"),
        cure=(
            (
                "    torch.manual_seed(0)\n",
                "    torch.set_float32_matmul_precision('medium')\n    torch.manual_seed(0)\n",
            ),
        ),
        findings=("compute-bound",),
        fixes=("float32-precision", "amp-bf16"),
        seen=("microsoft/retrochimera#36",),
    ),
    Cause(
        name="double precision",
        program="causes/double_precision.py",
        cure=(
            ("inputs = torch.from_numpy(table)", "inputs = torch.from_numpy(table).float()"),
            ("    model = model.double()\n", ""),
        ),
        findings=("double-precision",),
        fixes=("single-precision",),
    ),
    Cause(
        name="autocast that costs",
        program="workloads/under_autocast.py",
        cure=(("dtype=torch.bfloat16)", "dtype=torch.bfloat16, enabled=False)"),),
        fixes=("full-precision",),
    ),
    Cause(
        name="gradients filled with zeros",
        program="workloads/zero_filled.py",
        cure=(("set_to_none=False", "set_to_none=True"),),
        fixes=("zero-grad-none",),
    ),
    Cause(
        name="memory given back at every step",
        program="workloads/large_tensors.py",
        variables={"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "1099511627776"},
        fixes=("allocator",),
    ),
    Cause(
        name="activations computed twice",
        program="causes/checkpointed_activations.py",
        cure=(("checkpoint(layer, rows, use_reentrant=False)", "layer(rows)"),),
        fixes=("checkpointing",),
        seen=("unslothai/unsloth#1631",),
    ),
    Cause(
        name="attention weights that nobody reads",
        program="workloads/long_sequences.py",
        cure=(
            ("self.attention(normed, normed, normed)", "self.attention(normed, normed, normed, need_weights=False)"),
        ),
        fixes=("attention-weights",),
    ),
    Cause(
        name="attention in single steps",
        program="planted/own_attention.py",
        cure=(
            (
                "        scores = queries @ keys.transpose(-2, -1) / math.sqrt(width // self.heads)\n"
                "        weights = scores.softmax(dim=-1)  # the slow line\n",
                "        attended = nn.functional.scaled_dot_product_attention(queries, keys, values)\n",
            ),
            ("(weights @ values)", "attended"),
        ),
        findings=("written-out-attention",),
        fixes=("fused-attention",),
        seen=("QwenLM/Qwen3#40",),
    ),
    Cause(
        name="a frozen part is computed in each epoch",
        program="planted/frozen_backbone.py",
        # Cured, a thousand are over after seconds.
        arguments=("--epochs", "100000"),
        cure=(
            (
                "    model.features.eval()\n",
                "    model.features.eval()\n"
                "    with torch.no_grad():\n"
                "        kept = torch.cat([model.features(part) for part in pictures.split(32)])\n"
                "    labels = (pictures.mean((1, 2, 3)) > 0).long()\n"
                "    loader = DataLoader(TensorDataset(kept, labels), batch_size=32, shuffle=True)\n",
            ),
            ("cross_entropy(model(batch), labels)", "cross_entropy(model.head(batch), labels)"),
        ),
        findings=("frozen-part",),
    ),
    Cause(
        name="batches of one",
        program="causes/small_batches.py",
        cure=(('"--batch-size", type=int, default=1', '"--batch-size", type=int, default=32'),),
        findings=("python-bound",),
        samples=32.0,
    ),
)

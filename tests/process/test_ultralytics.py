"""Callbacks that edits write for Ultralytics' trainer, in a training of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.test_ranks import found as looped

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import edited_files
from bottleneck_doctor.runtime.wire.messages import Site

PROGRAM = """\
import json

import torch
from PIL import Image
from pathlib import Path
from ultralytics import YOLO

for number in range(8):
    for part in ("images", "labels"):
        Path(part).mkdir(exist_ok=True)
    Image.effect_noise((64, 64), 60).convert("RGB").save(f"images/{number}.jpg")
    Path(f"labels/{number}.txt").write_text("0 0.5 0.5 0.3 0.3")
Path("data.yaml").write_text(f"path: {Path.cwd()}\\ntrain: images\\nval: images\\nnames: [box]\\n")
model = YOLO("yolov8n.yaml")
threads = set()
model.add_callback("on_train_batch_end", lambda trainer: threads.add(torch.get_num_threads()))
model.train(data="data.yaml", device="cpu", epochs=2, imgsz=32, batch=4, plots=False, optimizer="AdamW", project="out")
trainer = model.trainer
first = next(each for each in trainer.model.modules() if isinstance(each, torch.nn.Conv2d))
Path("seen.json").write_text(json.dumps({
    "workers": trainer.train_loader.num_workers,
    "threads": list(threads),
    "fused": [group["fused"] for group in trainer.optimizer.param_groups],
    "channels_last": first.weight.is_contiguous(memory_format=torch.channels_last),
    "wrapped": "forward" in vars(trainer.model),
    "loss": float(trainer.loss),
}))
"""
ALL: Setting = {
    "num_workers": 1,
    "intra_op_threads": 2,
    "fused_optimizer": True,
    "channels_last": True,
    "autocast": "bfloat16",
}


@pytest.mark.slow(together=True)
def test_the_trainer_does_what_its_callbacks_say(tmp_path: Path) -> None:
    if importlib.util.find_spec("ultralytics") is None:  # Importing it would write its settings into the user's folder.
        pytest.skip("ultralytics is not installed")
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    line = next(number for number, text in enumerate(PROGRAM.splitlines(), start=1) if "model.train(" in text)
    site = Site(str(script), line)
    sets = {"intra_op_threads": {"set_by": {"file": "/x/site-packages/ultralytics/utils/torch_utils.py", "line": 1}}}
    found = replace(looped(), device="cpu", forward_site=site, backward_site=site, loader_site=site, facts=sets)
    ((_, after),) = edited_files(ALL, found, [str(script)]).values()
    script.write_text(after)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "YOLO_CONFIG_DIR": str(tmp_path), "YOLO_OFFLINE": "true"}
    ran = subprocess.run(
        [sys.executable, str(script)], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=180
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen.pop("loss") > 0
    assert all(seen.pop("fused"))
    assert seen == {"workers": 1, "threads": [2], "channels_last": True, "wrapped": True}

"""Trains one of 23 small networks: 20 that learn as well if their products are rounded, and three that then do not.

python nets.py unet
python nets.py pressure --autocast

`--autocast`, `--channels-last` and `--compile` are the changes that doctor promises, made by hand. `--seed` draws the
data, the weights and the order of samples. The data hold enough noise that no loss goes to zero.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

SAMPLES = 2048
BATCH = 32
CLASSES = 8
WRONG = 0.15
"""Part of the labels that are drawn at random."""

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Net:
    """`make` returns the model, the inputs and the targets. `spoilt`: it learns nothing if its products are in
    bfloat16. `convolves`: a layout of its images can be changed."""

    make: Callable[[], tuple[nn.Module, Tensor, Tensor]]
    loss: Loss
    spoilt: bool = False
    convolves: bool = False


# -- data --------------------------------------------------------------------------------------------------------------


def classes(*shape: int, noise: float = 1.0) -> tuple[Tensor, Tensor]:
    """Noisy copies of one pattern for each class, with their labels."""
    patterns, labels = torch.randn(CLASSES, *shape), torch.randint(CLASSES, (SAMPLES,))
    inputs = patterns[labels] + noise * torch.randn(SAMPLES, *shape)
    wrong = torch.rand(SAMPLES) < WRONG
    return inputs, torch.where(wrong, torch.randint(CLASSES, (SAMPLES,)), labels)


def values(width: int) -> tuple[Tensor, Tensor]:
    """Inputs, and a smooth function of them with noise."""
    inputs = torch.randn(SAMPLES, width)
    return inputs, torch.tanh(inputs[:, :1] - inputs[:, 1:2]) + 0.2 * torch.randn(SAMPLES, 1)


def shapes(size: int) -> tuple[Tensor, Tensor]:
    """Noisy images of bright squares, and where the squares are."""
    masks = torch.zeros(SAMPLES, 1, size, size)
    for mask, corner in zip(masks, torch.randint(size // 2, (SAMPLES, 2)).tolist(), strict=True):
        mask[0, corner[0] : corner[0] + size // 2, corner[1] : corner[1] + size // 2] = 1.0
    return masks + torch.randn(SAMPLES, 1, size, size), masks


def sentences(length: int) -> Tensor:
    """Words of which each follows from the one before it, most of the time."""
    follows = torch.randint(64, (64,))
    rows = [torch.randint(64, (SAMPLES,))]
    for _ in range(length):
        chance = torch.rand(SAMPLES) < 0.3
        rows.append(torch.where(chance, torch.randint(64, (SAMPLES,)), follows[rows[-1]]))
    return torch.stack(rows, 1)


# -- networks ----------------------------------------------------------------------------------------------------------


class Residual(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.inside = nn.Sequential(*layers)

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs + self.inside(inputs)


class Last(nn.Module):
    """A recurrent layer, and what a linear one makes of its last step."""

    def __init__(self, layer: nn.Module, width: int, outputs: int) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(width, outputs)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.layer(inputs)[0][:, -1])


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU())
        self.deep = nn.Sequential(
            nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Upsample(scale_factor=2)
        )
        self.head = nn.Conv2d(48, 1, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        high = self.down(images)
        return self.head(torch.cat([high, self.deep(high)], 1))


class Variational(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Flatten(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 16))
        self.decode = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 256))

    def forward(self, images: Tensor) -> Tensor:
        mean, spread = self.encode(images).chunk(2, 1)
        drawn = mean + torch.exp(0.5 * spread) * torch.randn_like(mean)
        return torch.cat([self.decode(drawn), mean, spread], 1)


class Words(nn.Module):
    """A language model, which sees no later word."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(64, 64), nn.Parameter(0.02 * torch.randn(length, 64))
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(64, 64)
        self.register_buffer("mask", torch.full((length, length), -math.inf).triu(1))

    def forward(self, rows: Tensor) -> Tensor:
        return self.head(self.blocks(self.words(rows) + self.places, mask=self.mask))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.blocks, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(32, CLASSES)

    def forward(self, rows: Tensor) -> Tensor:
        return self.head(self.blocks(rows).mean(1))


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.EmbeddingBag(256, 64), nn.Linear(64, CLASSES)

    def forward(self, rows: Tensor) -> Tensor:
        return self.head(self.words(rows))


class Graph(nn.Module):
    """Nodes that take the mean of their neighbours, twice."""

    def __init__(self) -> None:
        super().__init__()
        near = (torch.rand(16, 16) < 0.3).float() + torch.eye(16)
        self.register_buffer("near", near / near.sum(1, keepdim=True))
        self.first, self.second, self.head = nn.Linear(16, 64), nn.Linear(64, 64), nn.Linear(64, CLASSES)

    def forward(self, nodes: Tensor) -> Tensor:
        hidden = torch.relu(self.near @ self.first(nodes))
        return self.head(torch.relu(self.near @ self.second(hidden)).mean(1))


class Pairs(nn.Module):
    """Two views through one encoder, or through two."""

    def __init__(self, width: int, *, shared: bool) -> None:
        super().__init__()
        self.one = nn.Sequential(nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, 32))
        self.other = self.one if shared else nn.Sequential(nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, 32))

    def forward(self, both: Tensor) -> Tensor:
        first, second = both.chunk(2, 1)
        return torch.stack([self.one(first), self.other(second)], 1)


class Seasons(nn.Module):
    """Waves of a day's number, which goes into the thousands: bfloat16 knows only every eighth or sixteenth there."""

    def __init__(self) -> None:
        super().__init__()
        self.waves, self.head = nn.Linear(1, 64), nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
        self.waves.requires_grad_(False)
        self.waves.weight.copy_(2 * math.pi / (2.0 + torch.arange(32)).repeat(2).unsqueeze(1))
        self.waves.bias.copy_(math.pi / 2 * torch.arange(2).repeat_interleave(32))

    def forward(self, days: Tensor) -> Tensor:
        return self.head(torch.sin(self.waves(days)))


class Whitened(nn.Module):
    """Divides by a deviation that it takes from a mean of squares, of inputs far from zero."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, CLASSES))

    def forward(self, inputs: Tensor) -> Tensor:
        mean = inputs.mean(0)
        squares = (inputs.t() @ inputs / len(inputs)).diagonal()
        return self.head((inputs - mean) / (squares - mean * mean).sqrt())


# -- losses ------------------------------------------------------------------------------------------------------------


def next_word(outputs: Tensor, rows: Tensor) -> Tensor:
    return functional.cross_entropy(outputs.flatten(0, 1), rows.flatten())


def evidence(outputs: Tensor, images: Tensor) -> Tensor:
    drawn, mean, spread = outputs.split([256, 8, 8], 1)
    apart = 0.5 * (mean.square() + spread.exp() - 1 - spread).sum(1).mean()
    return functional.binary_cross_entropy_with_logits(drawn, images.flatten(1)) + 0.001 * apart


def alike(outputs: Tensor, labels: Tensor) -> Tensor:
    return functional.cosine_embedding_loss(outputs[:, 0], outputs[:, 1], labels.squeeze(1), margin=0.2)


def contrasted(outputs: Tensor, _: Tensor) -> Tensor:
    one, other = functional.normalize(outputs, dim=2).unbind(1)
    return functional.cross_entropy(one @ other.t() / 0.2, torch.arange(len(one)))


# -- all of them -------------------------------------------------------------------------------------------------------

Made = tuple[nn.Module, Tensor, Tensor]


def perceptron(inputs: Tensor, targets: Tensor, outputs: int, width: int = 256) -> Made:
    layers = (
        nn.Linear(inputs.shape[1], width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, outputs),
    )
    return nn.Sequential(*layers), inputs, targets


def residual(inputs: Tensor, targets: Tensor) -> Made:
    blocks = [Residual(nn.LayerNorm(64), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64)) for _ in range(3)]
    return nn.Sequential(nn.Linear(inputs.shape[1], 64), *blocks, nn.Linear(64, 1)), inputs, targets


def pictures(width: int, *layers: nn.Module) -> Made:
    """Layers that end in `width` channels, and what classifies by them."""
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(16 * width, CLASSES))
    return model, *classes(3, 16, 16, noise=3.0)


def convolution(channels: int, outputs: int, norm: nn.Module, activation: nn.Module, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(channels, outputs, 3, padding=1, groups=groups), norm, activation)


def lenet() -> Made:
    first = (nn.Conv2d(3, 8, 3, padding=1), nn.Tanh(), nn.AvgPool2d(2))
    return pictures(16, *first, nn.Conv2d(8, 16, 3, padding=1), nn.Tanh())


def vgg() -> Made:
    first = convolution(3, 16, nn.BatchNorm2d(16), nn.ReLU())
    return pictures(32, first, nn.MaxPool2d(2), convolution(16, 32, nn.BatchNorm2d(32), nn.ReLU()), nn.Dropout(0.1))


def resnet() -> Made:
    blocks = [Residual(*convolution(16, 16, nn.BatchNorm2d(16), nn.ReLU()), nn.Conv2d(16, 16, 1)) for _ in range(2)]
    return pictures(16, nn.Conv2d(3, 16, 3, padding=1), *blocks)


def mobile() -> Made:
    deep = convolution(16, 16, nn.BatchNorm2d(16), nn.ReLU6(), groups=16)
    return pictures(32, nn.Conv2d(3, 16, 3, padding=1), deep, nn.Conv2d(16, 32, 1), nn.ReLU6())


def group_norm() -> Made:
    return pictures(16, convolution(3, 16, nn.GroupNorm(4, 16), nn.SiLU()), nn.Conv2d(16, 16, 3, padding=1), nn.SiLU())


def autoencoder() -> Made:
    images, masks = shapes(16)
    down = (nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, stride=2, padding=1), nn.ReLU())
    up = (nn.ConvTranspose2d(16, 16, 2, stride=2), nn.ReLU(), nn.ConvTranspose2d(16, 1, 2, stride=2))
    return nn.Sequential(*down, *up), images, masks


def waves() -> Made:
    layers = (nn.Conv1d(4, 16, 5, padding=2), nn.ReLU(), nn.Conv1d(16, 32, 5, stride=2, padding=2), nn.ReLU())
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Linear(256, CLASSES))
    return model, *classes(4, 64, noise=2.0)


def sums() -> Made:
    rows = torch.randn(SAMPLES, 12, 8)
    targets = torch.tanh(rows[:, :, :1].mean(1) * 3) + 0.2 * torch.randn(SAMPLES, 1)
    return Last(nn.GRU(8, 64, batch_first=True), 64, 1), rows, targets


def language() -> Made:
    rows = sentences(24)
    return Words(24), rows[:, :-1], rows[:, 1:]


def bags() -> Made:
    labels = torch.randint(CLASSES, (SAMPLES,))
    words = torch.randint(256, (SAMPLES, 20))
    own = labels.unsqueeze(1) * 32 + torch.randint(32, (SAMPLES, 6))
    return Bag(), torch.cat([words, own], 1), labels


def same_or_not() -> Made:
    first = torch.randn(SAMPLES, 32)
    same = torch.rand(SAMPLES) < 0.5
    second = torch.where(same.unsqueeze(1), first + torch.randn(SAMPLES, 32), torch.randn(SAMPLES, 32))
    return Pairs(32, shared=True), torch.cat([first, second], 1), (same.float() * 2 - 1).unsqueeze(1)


def two_views() -> Made:
    views = torch.randn(SAMPLES, 32)
    other = torch.tanh(views @ torch.randn(32, 32) / 4) + 0.3 * torch.randn(SAMPLES, 32)
    return Pairs(32, shared=False), torch.cat([views, other], 1), torch.zeros(SAMPLES)


def pressure() -> Made:
    """Hectopascal: bfloat16 knows only every fourth number at 1013."""
    inputs, targets = values(32)
    model, *rest = perceptron(inputs, 1013.25 + targets, 1)
    with torch.no_grad():
        model[-1].bias.fill_(1013.25)  # type: ignore[index, union-attr]
    return model, *rest


def days() -> Made:
    numbers = torch.randint(2000, 4000, (SAMPLES, 1)).float()
    return Seasons(), numbers, torch.sin(2 * math.pi * numbers / 7) + 0.2 * torch.randn(SAMPLES, 1)


def whitened() -> Made:
    inputs, labels = classes(64)
    return Whitened(), 100.0 + inputs, labels


CROSS, MEAN_SQUARE = functional.cross_entropy, functional.mse_loss
NETS = {
    "classifier": Net(lambda: perceptron(*classes(64, noise=2.0), CLASSES), CROSS),
    "regression": Net(lambda: perceptron(*values(32), 1), MEAN_SQUARE),
    "huber": Net(lambda: residual(*values(32)), functional.smooth_l1_loss),
    "lenet": Net(lenet, CROSS, convolves=True),
    "vgg": Net(vgg, CROSS, convolves=True),
    "resnet": Net(resnet, CROSS, convolves=True),
    "mobile": Net(mobile, CROSS, convolves=True),
    "group_norm": Net(group_norm, CROSS, convolves=True),
    "unet": Net(lambda: (UNet(), *shapes(16)), functional.binary_cross_entropy_with_logits, convolves=True),
    "autoencoder": Net(autoencoder, MEAN_SQUARE, convolves=True),
    "variational": Net(lambda: (Variational(), *[shapes(16)[1]] * 2), evidence),
    "lstm": Net(lambda: (Last(nn.LSTM(8, 64, batch_first=True), 64, CLASSES), *classes(12, 8, noise=2.0)), CROSS),
    "gru": Net(sums, MEAN_SQUARE),
    "encoder": Net(lambda: (Encoder(), *classes(12, 32, noise=2.0)), CROSS),
    "language": Net(language, next_word),
    "waves": Net(waves, CROSS),
    "bags": Net(bags, CROSS),
    "graph": Net(lambda: (Graph(), *classes(16, 16, noise=2.0)), CROSS),
    "same_or_not": Net(same_or_not, alike),
    "two_views": Net(two_views, contrasted),
    "pressure": Net(pressure, MEAN_SQUARE, spoilt=True),
    "days": Net(days, MEAN_SQUARE, spoilt=True),
    "whitened": Net(whitened, CROSS, spoilt=True),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("net", choices=NETS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=10**9)
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()

    net = NETS[args.net]
    torch.manual_seed(args.seed)
    model, inputs, targets = net.make()
    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)
    if args.compile:
        model.compile()
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=BATCH, shuffle=True, drop_last=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses: list[float] = []
    while len(losses) < args.steps:
        for batch, wanted in loader:
            if args.channels_last:
                batch = batch.to(memory_format=torch.channels_last)
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.autocast):
                loss = net.loss(model(batch), wanted)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"step {len(losses)} loss {sum(losses[-50:]) / len(losses[-50:]):.5f}", flush=True)


if __name__ == "__main__":
    main()

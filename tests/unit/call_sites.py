"""Programs that make a loader in all the ways in which people do, and what an edit has to make of each.

A program is one text: files, each headed by a line `=== name`, the first of which is started. It makes the loader that
trains of the dataset "train", and that which does not of "val".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HEAD = "from torch.utils.data import DataLoader\n"
WORKERS: Mapping[str, object] = {"num_workers": 4}
KEPT: Mapping[str, object] = {"num_workers": 4, "persistent_workers": True}
NONE: Mapping[str, object] = {"num_workers": 0}
PINNED: Mapping[str, object] = {"pin_memory": True}
FORKED: Mapping[str, object] = {"multiprocessing_context": "fork"}


@dataclass(frozen=True)
class Site:
    """One kind of call site. `setting`: what the loader is to get, and gets once `edited` files were edited and it is
    started with `started` (None: as before). With `edited` empty and `started` None the edit is refused, and `said` is
    a part of the note. `overridden`: the call says the value by then, since where it comes from is not followed.
    `val`: what the other loader gets by then, as far as that is asked. `device`: where the model is."""

    name: str
    program: str
    setting: Mapping[str, object] = field(default_factory=lambda: WORKERS)
    edited: tuple[str, ...] = ("train.py",)
    words: str = ""
    started: str | None = None
    said: str = ""
    overridden: bool = False
    val: Mapping[str, object] = field(default_factory=dict)
    device: str = "cpu"


def one(name: str, source: str, **others: object) -> Site:
    """A program of one file."""
    return Site(name, f"=== train.py\n{HEAD}{source}", **others)  # type: ignore[arg-type]


def refused(name: str, source: str, said: str, **others: object) -> Site:
    return one(name, source, edited=(), said=said, **others)


def overridden(name: str, source: str, **others: object) -> Site:
    return one(name, source, overridden=True, **others)


ARGPARSE = "import argparse\nparser = argparse.ArgumentParser()\n"
PARSED = "args = parser.parse_args()\n"
LOADERS = (
    "train = DataLoader('train', num_workers=args.workers)\n"
    "val = DataLoader('val', num_workers=args.workers)\n"
)  # fmt: skip

HANDS_ON = "def made(rows, **given):\n    return DataLoader(rows, **given)\n"

IN_THE_CALL = [
    one("nothing given", "loader = DataLoader('train')\n"),
    one("several at once", "loader = DataLoader('train', batch_size=4)\n", setting=KEPT),
    one("a keyword", "loader = DataLoader('train', num_workers=1, shuffle=True)  # slow\n", setting=KEPT),
    one("a position", "loader = DataLoader('train', 16, True, None, None, 1)\n"),
    overridden(
        "a position that is computed", "import os\nloader = DataLoader('train', 16, True, None, None, os.cpu_count())\n"
    ),
    one(
        "one of the last positions",
        "loader = DataLoader('train', 16, True, None, None, 1, None, False)\n",
        setting=PINNED,
    ),
    one(
        "a line each",
        "loader = DataLoader(\n    'train',  # rows\n    batch_size=4,\n    # of the cluster\n)\n",
        setting=KEPT,
    ),
    one("no comma at the end", "loader = DataLoader(\n    'train',\n    batch_size=4  # paper\n)\n", setting=KEPT),
    one("aligned", "loader = DataLoader('train',\n                    batch_size=4)\n", setting=KEPT),
    one("commas first", "loader = DataLoader(\n      'train'\n    , batch_size=4\n)\n", setting=KEPT),
    one("a line that is full", f"loader = DataLoader('train', batch_size={'1 + ' * 20}1)\n", setting=KEPT),
    one("by the module", "import torch.utils.data\nloader = torch.utils.data.DataLoader('train')\n"),
    one("by the package", "from torch.utils import data\nloader = data.DataLoader('train', 4)\n"),
    one("imported as", "from torch.utils.data import DataLoader as DL\nloader = DL('train', 4)\n"),
    one("by another name", "make = DataLoader\nloader = make('train', 4)\n"),
    one("of a type", "loader = DataLoader[int]('train')\n"),
    one("a class of its own", "class Loader(DataLoader): pass\nloader = Loader('train')\n"),
    one("a class of another name", "class Batches(DataLoader): pass\nloader = Batches('train')\n"),
    one(
        "in the constructor of a class",
        "class Rows(DataLoader):\n    def __init__(self, rows):\n        super().__init__(rows, batch_size=4)\n"
        "loader = Rows('train')\n",
        setting=KEPT,
    ),
    one("in a loop", "for epoch in range(2):\n    loader = DataLoader('train')\n"),
    one(
        "in a comprehension", "loaders = [DataLoader(each, num_workers=1) for each in ('train', 'val')]\n", val=WORKERS
    ),
    one(
        "in a comprehension of a dict",
        "rows = {'a': 'train', 'b': 'val'}\n"
        "loaders = {each: DataLoader(rows[each], batch_size=4,\n"
        "                            shuffle=True, num_workers=1)\n"
        "           for each in ['a', 'b']}\n",
        setting=KEPT,
        val=KEPT,
    ),
    one(
        "in a function", "def load(rows):\n\treturn DataLoader(\n\t\trows\n\t)\nloader = load('train')\n", setting=KEPT
    ),
    one("in a lambda", "load = lambda rows: DataLoader(rows, num_workers=1)\nloader = load('train')\n"),
    one("in a condition", "if (loader := DataLoader('train')) is not None:\n    pass\n"),
    one("in another call", "print(len([DataLoader('train', 2)]), 3)\n", setting=KEPT),
    one("in a method", "class Data:\n    def train(self):\n        return DataLoader('train')\nData().train()\n"),
    one("beside a lambda", "loader = DataLoader('train', collate_fn=lambda a, b=(1, 2): (a, b))\n", setting=KEPT),
    one(
        "beside an f-string", "x = 1\nloader = DataLoader(f\"tr{'ain'}\", batch_size=int(f'{x!r:>2}'))\n", setting=KEPT
    ),
    one("over a backslash", "loader = \\\n    DataLoader('train', \\\n               4)\n", setting=KEPT),
    one("a value in parentheses", "loader = DataLoader('train', pin_memory=(False))\n", setting=PINNED),
    one("another start method", "loader = DataLoader('train', num_workers=2)\n", setting=FORKED),
    one(
        "a start method by its name",
        "loader = DataLoader('train', num_workers=2, multiprocessing_context='spawn', timeout=9)\n",
        setting=FORKED,
    ),
    overridden(
        "a start method's object",
        "import multiprocessing as mp\n"
        "loader = DataLoader('train', num_workers=2, multiprocessing_context=mp.get_context('spawn'))\n",
        setting=FORKED,
    ),
    overridden("a value that depends", "debug = False\nloader = DataLoader('train', num_workers=0 if debug else 8)\n"),
    overridden(
        "a value that is worked out", "import os\nloader = DataLoader('train', num_workers=min(2, os.cpu_count()))\n"
    ),
    overridden(
        "the environment", "import os\nloader = DataLoader('train', num_workers=int(os.environ.get('WORKERS', 2)))\n"
    ),
    one("without workers", "loader = DataLoader('train', num_workers=2, prefetch_factor=4)\n", setting=NONE),
    one(
        "without workers, a line each",
        "loader = DataLoader(\n    'train',\n    num_workers=2,\n    prefetch_factor=4,  # tuned\n"
        "    persistent_workers=True,\n    shuffle=True,\n)\n",
        setting=NONE,
    ),
    one(
        "names that a function hands on",
        ARGPARSE
        + "parser.add_argument('--workers', type=int, default=1)\n"
        + PARSED
        + HANDS_ON
        + "train = made('train', num_workers=args.workers)\n",
    ),
    one(
        "names that a class hands on",
        "class Endless:\n    def __init__(self, rows, **kwargs):\n        self.loader = DataLoader(rows, **kwargs)\n"
        "train = Endless('train', num_workers=1, batch_size=4)\n",
        setting=KEPT,
    ),
    one("names that nobody gives", HANDS_ON + "train = made('train', shuffle=True)\n"),
    overridden(
        "names that are given differently",
        HANDS_ON + "train = made('train', num_workers=1)\nval = made('val', num_workers=2)\n",
    ),
    overridden(
        "names that are changed before they are handed on",
        "def made(rows, **given):\n    given.setdefault('num_workers', 1)\n    return DataLoader(rows, **given)\n"
        "train = made('train')\n",
    ),
    overridden(
        "names of names",
        HANDS_ON
        + "given = {'num_workers': 1}\ngiven.update(more=1)\ndel given['more']\ntrain = made('train', **given)\n",
    ),
    refused(
        "two on a line", "a, b = DataLoader('train'), DataLoader('val')\n", "Several loaders are made on this line"
    ),
    refused(
        "one of two on a line",
        "a = DataLoader('train') if HEAD else DataLoader('val')\n".replace("HEAD", "True"),
        "Several loaders are made on this line",
    ),
    refused(
        "unpacked positions", "given = ['train', 4]\nloader = DataLoader(*given)\n", "`*given` may hold num_workers"
    ),
    refused(
        "whatever is handed on",
        "class Rows(DataLoader):\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n"
        "loader = Rows('train')\n",
        "`*args` may hold num_workers",
    ),
    refused(
        "a comment in the value",
        "loader = DataLoader('train', num_workers=max(1,  # few\n                                             2))\n",
        "Set num_workers=4 in this call.",
    ),
    refused(
        "a library that makes it",
        "from trainers import Plain\ntrainer = Plain('train')\ntrainer.fit(3)\n",
        "Set num_workers=4 where `trainer.fit(...)` makes its DataLoader: no argument of it sets num_workers.",
    ),
    refused(
        "a library that makes it of some of what it is given",
        "from trainers import Plain\ntrainer = Plain('train')\ntrainer.fit(3, batch_size=256, shuffle=True)\n",
        "Set num_workers=4 where `trainer.fit(...)` makes its DataLoader: no argument of it sets num_workers.",
    ),
    refused(
        "a function of a library that may have it by its place",
        "from trainers import Plain\nPlain('').learn(*['train', 3, 8, 0])\n",
        "Set num_workers=4 where `Plain('').learn(...)` makes its DataLoader.",
    ),
    refused(
        "a function of a library that does not take all",
        "from trainers import Plain\nPlain('').learn('train', 3)\n",
        "makes its DataLoader: no argument of it sets persistent_workers.",
        setting=KEPT,
    ),
]

BY_A_LIBRARY = [
    one("a function of a library that takes it", "from trainers import Plain\nPlain('').learn('train', 3)\n"),
    one("a function of a library that has it", "from trainers import Plain\nPlain('').learn('train', num_workers=1)\n"),
    one(
        "a function of a library that hands all on",
        "from trainers import Plain\nPlain('').to_loader('train', drop_last=True)\n",
        setting=KEPT,
    ),
    one("a dict of them", "from trainers import Plain\nPlain('').forecast('train', 3)\n", setting=KEPT),
    one(
        "a dict of them that is given",
        "from trainers import Plain\nmodel = Plain('')\n"
        "model.forecast('train', dataloader_kwargs={'num_workers': 1, 'drop_last': True})\n",
        setting={**KEPT, "drop_last": True},
    ),
    one(
        "a dict of them with one that is none any more",
        "from trainers import Plain\nmodel = Plain('')\n"
        "model.forecast('train', dataloader_kwargs={'num_workers': 1, 'persistent_workers': True})\n",
        setting=NONE,
    ),
    one(
        "a dict of them that is None",
        "from trainers import Plain\nPlain('').forecast('train', dataloader_kwargs=None)\n",
    ),
    one(
        "a dict of them that has a name",
        "from trainers import Plain\nmore = dict(drop_last=True)\nmodel = Plain('')\n"
        "model.forecast('train', dataloader_kwargs=more)\n",
        setting={**KEPT, "drop_last": True},
    ),
    one("an object of a library that looks it up", "from trainers import Keeping\nt = Keeping('train')\nt.fit(3)\n"),
    one(
        "a call of a library in another call",
        "from trainers import Plain\nmade = dict(one=Plain('val').learn('train'))\n",
    ),
    one(
        "calls of a library in a chain",
        "from trainers import Plain\n"
        "made = dict(\n    one=(\n        Plain('val')\n        .learn('train')\n    )\n)\n",
    ),
    one(
        "an object of a library, and a function that takes the batch's size",
        "from trainers import Keeping\nt = Keeping('train', 8)\nt.fit(3, batch_size=64)\n",
    ),
    one(
        "an object that a library is given",
        "from trainers import Fits, Module\nrows = Module('train')\nFits().fit('model', datamodule=rows)\n",
    ),
    one(
        "an object that a library is given within another one",
        "from trainers import Module, Wraps\nmodules = [Module('train')]\nWraps(modules=modules).fit(3)\n",
    ),
    refused(
        "one of two objects that a library is given within another one",
        "from trainers import Module, Wraps\nmodules = [Module('train'), Module('val')]\nWraps(modules).fit(3)\n",
        "makes its DataLoader",
    ),
    one(
        "an object of an own class of a library's",
        "from trainers import Keeping\nclass Mine(Keeping):\n    pass\nMine('train').fit(3)\n",
    ),
    one(
        "a library that has a prefix for all of them",
        "from skorch import NeuralNet\nnet = NeuralNet(None, batch_size=8)\nnet.fit('train')\n",
        setting=KEPT,
    ),
]

HANDED_ON = [
    one(
        "a partial",
        "from functools import partial\nmake = partial(DataLoader, num_workers=1)\nloader = make('train')\n",
    ),
    one(
        "a partial that is handed on at once",
        "from functools import partial\nmake = partial(DataLoader, batch_size=4)\nprint(id(make('train')))\n",
    ),
    one(
        "a partial that is shared",
        "import functools\nmake = functools.partial(DataLoader, batch_size=4)\nloader = make('train')\n"
        "other = make('val')\n",
        setting=KEPT,
        val={"num_workers": 0},
    ),
    one(
        "a partial with positions",
        "from functools import partial\nmake = partial(DataLoader, 'train', 4)\nloader = make(True, None, None, 1)\n",
        setting=KEPT,
    ),
    refused(
        "a partial that has its position",
        "from functools import partial\nmake = partial(DataLoader, 'train', 4, True, None, None, 1)\nloader = make()\n",
        "Set num_workers=4 in this call.",
    ),
    one(
        "a partial, without workers",
        "from functools import partial\nmake = partial(DataLoader, num_workers=2, prefetch_factor=3)\n"
        "loader = make('train')\n",
        setting=NONE,
    ),
    one("a dict", "options = {'num_workers': 1, 'shuffle': True}\nloader = DataLoader('train', **options)\n"),
    one("a dict, and more", "options = dict(num_workers=1)\nloader = DataLoader('train', **options)\n", setting=KEPT),
    one(
        "a dict without it",
        "options = {'shuffle': True}\nloader = DataLoader('train', **options)\nval = DataLoader('val', **options)\n",
        setting=KEPT,
        val={"num_workers": 0},
    ),
    one(
        "a dict that two share",
        "options = {\n    'num_workers': 1,\n}\nloader = DataLoader('train', **options)\n"
        "val = DataLoader('val', **options)\n",
        said="The loader in line 6 gets it too.",
        val=WORKERS,
    ),
    one("a dict in the call", "loader = DataLoader('train', **{'num_workers': 1})\n", setting=KEPT),
    one("a dict that is filled", "options = {}\noptions['num_workers'] = 1\nloader = DataLoader('train', **options)\n"),
    overridden(
        "a dict that may be filled",
        "import sys\noptions = {}\nif sys.argv[1:]:\n    options['num_workers'] = 1\n"
        "loader = DataLoader('train', **options)\n",
    ),
    overridden(
        "a dict that is brought up to date",
        "more = {'num_workers': 1, 'pin_memory': False}\noptions = {'batch_size': 4}\nif more:\n"
        "    options.update(more)\n"
        "loader = DataLoader('train', **options)\nval = DataLoader('val', **options)\n",
        setting={"num_workers": 4, "pin_memory": True},
        val={"num_workers": 1},
    ),
    one("whatever comes", HANDS_ON + "train = made('train', num_workers=1)\n"),
    one(
        "a dict, without workers",
        "options = {\n    'num_workers': 2,\n    'prefetch_factor': 3,\n    'batch_size': 4,\n}\n"
        "loader = DataLoader('train', **options)\n",
        setting=NONE,
    ),
    one("whatever comes, without workers", HANDS_ON + "train = made('train', num_workers=1)\n", setting=NONE),
    overridden(
        "whatever comes to each, without workers",
        HANDS_ON + "train = made('train', num_workers=1, prefetch_factor=3)\nval = made('val', num_workers=2)\n",
        setting=NONE,
    ),
    Site(
        "options that a class keeps, without workers",
        "=== train.py\nimport loaders\nloader = getattr(loaders, 'Rows')('train', 3)\n"
        f"=== loaders.py\n{HEAD}class Rows(DataLoader):\n    def __init__(self, rows, workers):\n"
        "        self.options = {'dataset': rows, 'num_workers': workers}\n"
        "        super().__init__(**self.options)\n",
        setting=NONE,
        edited=("loaders.py",),
        overridden=True,
    ),
    one("wrapped", "from wrappers import prepare\nloader = DataLoader('train', 4)\nloader = prepare(loader)\n"),
    one(
        "one of several wrapped",
        "from wrappers import prepare\ntrain_loader = DataLoader('train', 4)\nval_loader = DataLoader('val')\n"
        "train_loader, val_loader = prepare(train_loader, val_loader)\n",
        val={"num_workers": 0},
    ),
]

CONSTANTS = [
    one("a constant", "NUM_WORKERS = 1\nloader = DataLoader('train', num_workers=NUM_WORKERS)\n", setting=KEPT),
    overridden(
        "a constant for two things",
        "N = 1\nloader = DataLoader('train', batch_size=N, num_workers=N)\n",
        setting={"num_workers": 4, "batch_size": 1},
    ),
    one(
        "a constant that others read",
        "import os\nN = 1\nos.environ['OMP_NUM_THREADS'] = str(N)\nloader = DataLoader('train', num_workers=N)\n",
        said="`N` is read in line 4 too.",
    ),
    one(
        "a constant in a function",
        "def main():\n    n: int = 1\n    return DataLoader('train', num_workers=n)\nmain()\n",
    ),
    one("one of two constants", "size, workers = 4, 1\nloader = DataLoader('train', size, num_workers=workers)\n"),
    overridden("a constant that is set twice", "n = 1\nn = n + 1\nloader = DataLoader('train', num_workers=n)\n"),
    Site(
        "a constant of another module",
        f"=== train.py\n{HEAD}from config import WORKERS\nloader = DataLoader('train', num_workers=WORKERS)\n"
        "=== config.py\n# What is tuned.\nWORKERS = 1  # a core\n",
        edited=("config.py",),
    ),
    Site(
        "a constant by its module",
        f"=== train.py\n{HEAD}from settings import loading as l\nloader = DataLoader('train', num_workers=l.WORKERS)\n"
        "=== settings/__init__.py\n=== settings/loading.py\nfrom .machine import WORKERS\n"
        "=== settings/machine.py\nWORKERS = 1\n",
        setting=KEPT,
        edited=("settings/machine.py", "train.py"),
    ),
    Site(
        "all of another module",
        f"=== train.py\n{HEAD}from config import *\nloader = DataLoader('train', num_workers=WORKERS)\n"
        "=== config.py\nWORKERS = 1\n",
        edited=("config.py",),
    ),
    one("a key", "CFG = {'num_workers': 1}\nloader = DataLoader('train', num_workers=CFG['num_workers'])\n"),
    one("a key of a key", "CFG = {'data': {'n': 1}}\nloader = DataLoader('train', num_workers=CFG['data']['n'])\n"),
    one("a key that is not there", "CFG = {}\nloader = DataLoader('train', num_workers=CFG.get('n', 1))\n"),
    overridden(
        "a key that is changed",
        "CFG = {'n': 1}\nCFG['n'] += 1\nloader = DataLoader('train', num_workers=CFG['n'])\n",
        said="`CFG['n']` sets num_workers now",
    ),
    one(
        "an attribute",
        "from types import SimpleNamespace\ncfg = SimpleNamespace(workers=1)\n"
        "loader = DataLoader('train', num_workers=int(cfg.workers))\n",
    ),
    one("an attribute of a class", "class C:\n    workers = 1\nloader = DataLoader('train', num_workers=C.workers)\n"),
    one(
        "an attribute that is set",
        "class C: pass\ncfg = C()\ncfg.workers = 1\nloader = DataLoader('train', num_workers=cfg.workers)\n",
    ),
]

FUNCTIONS = [
    one("a default", "def load(rows, n=1):\n    return DataLoader(rows, num_workers=n)\nloader = load('train')\n"),
    one("what a caller gives", "def load(n):\n    return DataLoader('train', num_workers=n)\nloader = load(n=1)\n"),
    one(
        "what a method gets",
        "class T:\n    def __init__(self, workers):\n        self.workers = workers\n"
        "    def load(self):\n        return DataLoader('train', num_workers=self.workers)\nT(1).load()\n",
    ),
    one(
        "a default that two callers leave",
        "def load(rows, n=1):\n    return DataLoader(rows, num_workers=n)\nload('train')\nload('val')\n",
        said="`load` is called 2 times, and each of its loaders gets it.",
        val=WORKERS,
    ),
    Site(
        "a caller that nobody sees",
        f"=== train.py\nimport middle\n=== middle.py\nfrom data import load\nload('train', 1)\n"
        f"=== data.py\n{HEAD}def load(rows, n=0):\n    return DataLoader(rows, num_workers=n)\n",
        edited=("data.py",),
        overridden=True,
        said="`n` sets num_workers now",
    ),
    overridden(
        "what two callers give",
        "def load(rows, n):\n    return DataLoader(rows, num_workers=n)\nload('train', 1)\nload('val', 2)\n",
        said="`n` sets num_workers now",
        val=WORKERS,
    ),
    Site(
        "a caller in another file",
        "=== train.py\nfrom data import load\nload('train', workers=1)\n"
        f"=== data.py\n{HEAD}def load(rows, workers=0):\n    return DataLoader(rows, num_workers=workers)\n",
        words="train.py",
    ),
    one(
        "what a function returns",
        "def config():\n    return {'n': 1}\ncfg = config()\nDataLoader('train', num_workers=cfg['n'])\n",
    ),
    one(
        "a property",
        "class C:\n    @property\n    def n(self):\n        return 1\nDataLoader('train', num_workers=C().n)\n",
    ),
]

CLASSES = [
    one(
        "a field",
        "from dataclasses import dataclass\n@dataclass\nclass Config:\n    workers: int = 1\ncfg = Config()\n"
        "loader = DataLoader('train', num_workers=cfg.workers)\n",
    ),
    one(
        "a field that is given",
        "from dataclasses import dataclass, field\n@dataclass\nclass Config:\n    n: int = field(default=0)\n"
        "cfg = Config(n=1)\n"
        "loader = DataLoader('train', num_workers=cfg.n)\n",
    ),
    one(
        "a field of a field",
        "from dataclasses import dataclass, field\n@dataclass\nclass Data:\n    workers: int = field(default=1)\n"
        "@dataclass\nclass Config:\n    data: Data = field(default_factory=Data)\ncfg = Config()\n"
        "loader = DataLoader('train', num_workers=cfg.data.workers)\n",
        setting=KEPT,
    ),
    one(
        "a field of what a function gets",
        "from dataclasses import dataclass\n@dataclass\nclass Base:\n    n: int = 1\nclass Config(Base): pass\n"
        "def main(cfg: Config):\n    return DataLoader('train', num_workers=cfg.n)\nmain(Config())\n",
    ),
    overridden(
        "a field that a class below says anew",
        "class Base:\n    n = 1\n    def load(self):\n        return DataLoader('train', num_workers=self.n)\n"
        "class Here(Base):\n    n = 2\nHere().load()\n",
        said="`self.n` sets num_workers now",
    ),
    one(
        "hyperparameters",
        "from wrappers import Module\nclass M(Module):\n    def __init__(self, n=1):\n"
        "        self.save_hyperparameters(n=n)\n"
        "    def load(self):\n        return DataLoader('train', num_workers=self.hparams.n)\nM().load()\n",
    ),
]

OPTIONS = [
    one(
        "an option",
        f"{ARGPARSE}parser.add_argument('--workers', default=1, type=int)\n{PARSED}{LOADERS}",
        setting=KEPT,
        said="The loader in line 7 gets it too.",
        val=WORKERS,
    ),
    overridden(
        "an option without a default",
        f"{ARGPARSE}parser.add_argument('-j', '--workers', type=int)\n{PARSED}{LOADERS}".replace(
            "=args.workers", "=args.workers or 0"
        ),
        said="`args.workers or 0` sets num_workers now",
    ),
    one(
        "an option of None",
        f"{ARGPARSE}parser.add_argument('--pin', type=bool)\n{PARSED}"
        "loader = DataLoader('train', pin_memory=args.pin)\n",
        setting=PINNED,
    ),
    one(
        "an option that is given",
        f"{ARGPARSE}parser.add_argument('-j', '--workers', default=1, type=int)\n{PARSED}{LOADERS}",
        words="train.py --workers 2",
        started="train.py --workers 4",
        edited=(),
        said="write `--workers 4` there",
    ),
    one(
        "an option given with a sign",
        f"{ARGPARSE}parser.add_argument('--workers', type=int)\n{PARSED}{LOADERS}",
        words="train.py --workers=2",
        started="train.py --workers=4",
        edited=(),
        said="in place of `--workers=2`",
    ),
    one(
        "an option given in short",
        f"{ARGPARSE}parser.add_argument('-j', '--workers', type=int)\n{PARSED}{LOADERS}",
        words="train.py -j2",
        started="train.py -j4",
        edited=(),
        said="write `-j4` there",
    ),
    one(
        "an option that is given, and more",
        f"{ARGPARSE}parser.add_argument('--workers', default=1, type=int)\n{PARSED}{LOADERS}",
        words="train.py --workers 2",
        started="train.py --workers 4",
        setting=KEPT,
        said="write `--workers 4` there",
    ),
    overridden(
        "a position of the command line",
        f"{ARGPARSE}parser.add_argument('workers', type=int)\n{PARSED}{LOADERS}",
        words="train.py 2",
        said="`args.workers` sets num_workers now",
        val={"num_workers": 2},
    ),
    one(
        "a constant as default",
        f"{ARGPARSE}N = 1\nparser.add_argument('--workers', default=N, type=int)\n{PARSED}{LOADERS}",
    ),
    one(
        "another name", f"{ARGPARSE}parser.add_argument('--n', dest='workers', default=1, type=int)\n{PARSED}{LOADERS}"
    ),
    one(
        "a name with hyphens",
        f"{ARGPARSE}parser.add_argument('--num-workers', default=1)\n{PARSED}"
        "loader = DataLoader('train', num_workers=args.num_workers)\n",
    ),
    one(
        "some of the words",
        f"{ARGPARSE}parser.add_argument('--workers', default=1)\nargs, _ = parser.parse_known_args()\n{LOADERS}",
    ),
    one(
        "no words at all",
        f"{ARGPARSE}parser.add_argument('--workers', default=1)\nargs = parser.parse_args([])\n{LOADERS}",
        words="train.py --workers 2",
    ),
    one(
        "a dict of options",
        f"{ARGPARSE}parser.add_argument('--workers', default=1)\ncfg = vars(parser.parse_args())\n"
        "loader = DataLoader('train', num_workers=cfg['workers'])\n",
    ),
    one(
        "options in a group",
        f"{ARGPARSE}g = parser.add_argument_group('data')\ng.add_argument(\n    '--workers',\n    default=1,\n"
        f"    help='processes, (many)',\n)\n{PARSED}{LOADERS}",
    ),
    one(
        "options that are handed on",
        f"{ARGPARSE}parser.add_argument('--workers', default=1)\n"
        "def main(args):\n    return DataLoader('train', num_workers=args.workers)\nmain(parser.parse_args())\n",
    ),
    overridden(
        "options that are changed",
        f"{ARGPARSE}parser.add_argument('--workers', default=2, type=int)\n{PARSED}"
        f"args.workers = int((args.workers + 1) / 2)\n{LOADERS}",
        said="`args.workers` sets num_workers now",
        val={"num_workers": 1},
    ),
    overridden(
        "options that are overwritten",
        f"{ARGPARSE}parser.add_argument('--workers', default=2)\n{PARSED}"
        f"vars(args).update({{'workers': 3}})\n{LOADERS}",
        said="`args.workers` sets num_workers now",
    ),
    overridden(
        "defaults that are set",
        f"{ARGPARSE}parser.add_argument('--workers', default=2)\nparser.set_defaults(workers=1)\n{PARSED}{LOADERS}",
        said="`args.workers` sets num_workers now",
    ),
    one(
        "a switch",
        f"{ARGPARSE}parser.add_argument('--pin', action='store_true')\n{PARSED}"
        "loader = DataLoader('train', pin_memory=args.pin)\n",
        setting=PINNED,
        said="`--pin` on the command line",
    ),
    one(
        "a switch that is given",
        f"{ARGPARSE}parser.add_argument('--pin', action='store_true')\n{PARSED}"
        "loader = DataLoader('train', pin_memory=args.pin)\n",
        setting={"pin_memory": False},
        words="train.py --pin",
        started="train.py",
        edited=(),
        said="Leave `--pin` out",
    ),
    one(
        "a switch that takes away",
        f"{ARGPARSE}parser.add_argument('--no-pin', dest='pin', action='store_false')\n{PARSED}"
        "loader = DataLoader('train', pin_memory=args.pin)\n",
        setting=PINNED,
        words="train.py --no-pin",
        started="train.py",
        edited=(),
        said="Leave `--no-pin` out",
    ),
    one(
        "a switch of both ways",
        f"{ARGPARSE}parser.add_argument('--pin', action=argparse.BooleanOptionalAction)\n{PARSED}"
        "loader = DataLoader('train', pin_memory=args.pin)\n",
        setting=PINNED,
        words="train.py --no-pin",
        started="train.py --pin",
        edited=(),
        said="write `--pin` there",
    ),
    Site(
        "options of another module",
        f"=== train.py\n{HEAD}from options import get_args\nargs = get_args()\n"
        "loader = DataLoader('train', num_workers=args.workers)\n"
        f"=== options.py\n{ARGPARSE}parser.add_argument('--workers', default=1)\n"
        "def get_args():\n    return parser.parse_args()\n",
        setting=KEPT,
        edited=("options.py", "train.py"),
    ),
    Site(
        "options that a module adds",
        f"=== train.py\n{HEAD}{ARGPARSE}from data import add_options\nadd_options(parser)\n{PARSED}{LOADERS}"
        "=== data.py\ndef add_options(parser):\n    parser.add_argument('--workers', default=1)\n",
        edited=("data.py",),
        val=WORKERS,
    ),
    Site(
        "a class of options",
        f"=== train.py\n{HEAD}from options import Options\nopt = Options().parse()\n"
        "loader = DataLoader('train', num_workers=opt.workers)\n"
        f"=== options.py\nimport argparse\nclass Options:\n    def __init__(self):\n"
        f"        self.parser = argparse.ArgumentParser()\n"
        "        self.parser.add_argument('--workers', default=1)\n"
        "    def parse(self):\n        self.opt = self.parser.parse_args()\n        return self.opt\n",
        edited=("options.py",),
    ),
    one(
        "click",
        "import click\n@click.command()\n@click.option('-j', '--workers', default=1)\ndef main(workers):\n"
        "    DataLoader('train', num_workers=workers)\nmain()\n",
        setting=KEPT,
    ),
    one(
        "click without a default",
        "import click\n@click.command()\n@click.option('--num-workers', 'n', type=int)\n"
        "def main(n):\n    DataLoader('train', num_workers=n)\nmain()\n",
        words="train.py --num-workers 2",
        started="train.py --num-workers 4",
        edited=(),
        said="write `--num-workers 4` there",
    ),
    one(
        "a switch of click",
        "import click\n@click.command()\n@click.option('--pin/--no-pin', default=False)\n"
        "def main(pin):\n    DataLoader('train', pin_memory=pin)\nmain()\n",
        setting=PINNED,
    ),
    one(
        "typer",
        "import typer\ndef main(workers: int = 1):\n    DataLoader('train', num_workers=workers)\ntyper.run(main)\n",
        words="train.py --workers 2",
        started="train.py --workers 4",
        edited=(),
        said="write `--workers 4` there",
    ),
    one(
        "an option of typer",
        "import typer\ndef main(n: int = typer.Option(1, '--workers')):\n"
        "    DataLoader('train', num_workers=n)\ntyper.run(main)\n",
        said="`--workers 4` on the command line",
    ),
    one(
        "fire",
        "import fire\ndef main(workers=1):\n    DataLoader('train', num_workers=workers)\nfire.Fire(main)\n",
        words="train.py --workers=2",
        started="train.py --workers=4",
        edited=(),
        said="write `--workers=4` there",
    ),
    one(
        "tyro",
        "from dataclasses import dataclass\nimport tyro\n@dataclass\nclass Args:\n    num_workers: int = 1\n"
        "args = tyro.cli(Args)\nloader = DataLoader('train', num_workers=args.num_workers)\n",
        setting=KEPT,
    ),
]

LOADED = "import yaml\nwith open('config.yaml') as file:\n    cfg = yaml.safe_load(file)\n"
YAML = "# tuned\ndata:\n  num_workers: 1   # a core\n  pin: no\n"

DOCUMENTS = [
    Site(
        "YAML",
        f"=== train.py\n{HEAD}{LOADED}loader = DataLoader('train', num_workers=cfg['data']['num_workers'])\n"
        f"=== config.yaml\n{YAML}",
        edited=("config.yaml",),
    ),
    Site(
        "YAML, and more",
        f"=== train.py\n{HEAD}{LOADED}d = cfg['data']\nloader = DataLoader('train', num_workers=d['num_workers'],\n"
        f"                    pin_memory=d.get('pin', False))\n=== config.yaml\n{YAML}",
        setting={"num_workers": 4, "pin_memory": True, "persistent_workers": True},
        edited=("config.yaml", "train.py"),
    ),
    Site(
        "a key that YAML lacks",
        f"=== train.py\n{HEAD}{LOADED}loader = DataLoader('train', num_workers=cfg.get('n', 1))\n"
        f"=== config.yaml\n{YAML}",
    ),
    Site(
        "YAML that is unpacked",
        f"=== train.py\n{HEAD}{LOADED}loader = DataLoader('train', **cfg['loader'])\n"
        "=== config.yaml\nloader: {num_workers: 1, batch_size: 4}\n",
        edited=("config.yaml",),
    ),
    Site(
        "an anchor of YAML",
        f"=== train.py\n{HEAD}{LOADED}loader = DataLoader('train', num_workers=cfg['train']['n'])\n"
        "=== config.yaml\nbase: &base\n  n: 1\ntrain:\n  <<: *base\n",
        edited=("config.yaml",),
    ),
    Site(
        "YAML beside the script",
        f"=== train.py\n{HEAD}import yaml\nfrom pathlib import Path\n"
        "cfg = yaml.load((Path(__file__).parent / 'conf' / 'a.yaml').read_text(), Loader=yaml.SafeLoader)\n"
        "loader = DataLoader('train', num_workers=cfg['n'])\n=== conf/a.yaml\nn: 1\n",
        edited=("conf/a.yaml",),
    ),
    Site(
        "YAML that an option names",
        f"=== train.py\n{HEAD}{ARGPARSE}parser.add_argument('--config', default='a.yaml')\n{PARSED}"
        "import yaml\ncfg = yaml.safe_load(open(args.config))\nloader = DataLoader('train', num_workers=cfg['n'])\n"
        "=== a.yaml\nn: 1\n=== b.yaml\nn: 1\n",
        words="train.py --config b.yaml",
        edited=("b.yaml",),
    ),
    Site(
        "a function that reads YAML",
        f"=== train.py\n{HEAD}from config import load\ncfg = load('a.yaml')\n"
        "loader = DataLoader('train', num_workers=cfg['n'])\n"
        "=== config.py\nimport yaml\ndef load(path):\n    with open(path) as file:\n"
        "        return yaml.safe_load(file)\n"
        "=== a.yaml\nn: 1\n",
        words="train.py",
        edited=("a.yaml",),
    ),
    Site(
        "a dataclass of YAML",
        f"=== train.py\n{HEAD}{LOADED}from dataclasses import dataclass\n@dataclass\nclass Config:\n"
        "    n: int = 0\nconfig = Config(**cfg)\nloader = DataLoader('train', num_workers=config.n)\n"
        "=== config.yaml\nn: 1\n",
        edited=("config.yaml",),
    ),
    Site(
        "JSON",
        f"=== train.py\n{HEAD}import json\ncfg = json.load(open('config.json'))\n"
        "loader = DataLoader('train', pin_memory=cfg['pin'])\n=== config.json\n{\n\t\"n\": 1,\n\t\"pin\": false\n}\n",
        setting=PINNED,
        edited=("config.json",),
    ),
    Site(
        "JSON that the command line names",
        f"=== train.py\n{HEAD}import json, sys\ncfg = json.load(open(sys.argv[1]))\n"
        "loader = DataLoader('train', num_workers=cfg['n'])\n=== c.json\n{\"n\": 1}\n",
        words="train.py c.json",
        edited=("c.json",),
    ),
    Site(
        "JSON that the command line may name",
        f"=== train.py\n{HEAD}import json, sys\nfrom pathlib import Path\ndef load(config):\n"
        "    return DataLoader('train', num_workers=config['n'])\nif __name__ == '__main__':\n"
        "    path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name('c.json'))\n"
        "    load(json.loads(path.read_text()))\n"
        '=== c.json\n{\n  "n": 1,\n  "seed": 3\n}\n',
        setting=KEPT,
        edited=("c.json", "train.py"),
    ),
    Site(
        "OmegaConf",
        f"=== train.py\n{HEAD}from omegaconf import OmegaConf\ncfg = OmegaConf.load('a.yaml')\n"
        "loader = DataLoader('train', num_workers=cfg.loader.n)\n=== a.yaml\nloader:\n  n: 1\n",
        edited=("a.yaml",),
    ),
    Site(
        "an interpolation",
        f"=== train.py\n{HEAD}from omegaconf import OmegaConf\ncfg = OmegaConf.load('a.yaml')\n"
        "loader = DataLoader('train', num_workers=int(cfg.n))\n=== a.yaml\nn: ${m}\nm: 1\n".replace("${m}", "'${m}'"),
        overridden=True,
        said="`int(cfg.n)` sets num_workers now",
    ),
    Site(
        "Hydra",
        f"=== train.py\n{HEAD}import hydra\n@hydra.main(config_path='conf', config_name='config')\ndef main(cfg):\n"
        "    DataLoader('train', num_workers=cfg.loader.n)\nmain()\n=== conf/config.yaml\nloader:\n  n: 1\n",
        edited=("conf/config.yaml",),
    ),
    Site(
        "Hydra, overridden",
        f"=== train.py\n{HEAD}import hydra\n@hydra.main(config_path='conf', config_name='config')\n"
        "def main(cfg):\n    DataLoader('train', num_workers=cfg.loader.n)\nmain()\n=== conf/config.yaml\nloader:\n"
        "  n: 1\n",
        words="train.py loader.n=2",
        started="train.py loader.n=4",
        edited=(),
        said="write `loader.n=4` there",
    ),
    Site(
        "a group of Hydra's",
        f"=== train.py\n{HEAD}import hydra\n@hydra.main(config_path='conf', config_name='config.yaml')\n"
        "def main(cfg):\n    load(cfg.loader)\ndef load(cfg):\n    DataLoader('train', num_workers=cfg.n)\nmain()\n"
        "=== conf/config.yaml\ndefaults:\n  - loader: few\n  - _self_\n=== conf/loader/few.yaml\nn: 1\n",
        started="train.py loader.n=4",
        edited=(),
        said="Start it with `loader.n=4`",
    ),
]

TRAINERS = [
    Site(
        "training arguments",
        "=== train.py\nfrom transformers import Trainer, TrainingArguments\n"
        "args = TrainingArguments('out', dataloader_num_workers=1)\ntrainer = Trainer('model', args)\n"
        "trainer.train()\n",
        setting=KEPT,
    ),
    Site(
        "training arguments that are parsed",
        "=== train.py\nfrom transformers import HfArgumentParser, Trainer, TrainingArguments\n"
        "parser = HfArgumentParser(TrainingArguments)\n(args,) = parser.parse_args_into_dataclasses()\n"
        "trainer = Trainer('model', args=args)\ntrainer.train()\n",
        words="train.py --dataloader_num_workers 1",
        started="train.py --dataloader_num_workers 4",
        edited=(),
        said="write `--dataloader_num_workers 4` there",
    ),
    Site(
        "training arguments that have no such argument",
        "=== train.py\nfrom transformers import Trainer, TrainingArguments\n"
        "args = TrainingArguments('out', dataloader_num_workers=1)\ntrainer = Trainer('model', args)\n"
        "trainer.train()\n",
        setting={"in_order": False},
        edited=(),
        said="Return a DataLoader with in_order=False from get_train_dataloader",
    ),
    Site(
        "the workers of YOLO",
        "=== train.py\nfrom ultralytics import YOLO\nmodel = YOLO('yolov8n.yaml')\n"
        "model.train(data='data.yaml', epochs=3)\n",
        device="cuda:0",
    ),
    Site(
        "the workers of YOLO on a CPU",
        "=== train.py\nfrom ultralytics import YOLO\nmodel = YOLO('yolov8n.yaml')\n"
        "model.train(data='data.yaml', epochs=3, device='cpu')\n",
    ),
    Site(
        "the workers of YOLO on a CPU, which has no name",
        "=== train.py\nfrom ultralytics import YOLO\nYOLO().train(data='data.yaml', device='cpu')\n",
        edited=(),
        said='and write `model.add_callback("on_pretrain_routine_start", lambda trainer: setattr(trainer.args, "work',
    ),
    Site(
        "the workers of YOLO, given by an option",
        "=== train.py\nimport argparse\nfrom ultralytics import YOLO as Detector\n"
        "parser = argparse.ArgumentParser()\nparser.add_argument('--workers', type=int, default=1)\n"
        "args = parser.parse_args()\nDetector().train(data='data.yaml', workers=args.workers)\n",
        device="cuda:0",
    ),
    Site(
        "what YOLO has no argument for",
        "=== train.py\nfrom ultralytics import YOLO\nmodel = YOLO('yolov8n.yaml')\n"
        "model.train(data='data.yaml', workers=1)\n",
        setting={"in_order": False},
        edited=(),
        said="Ultralytics has no argument that sets in_order=False",
    ),
    Site(
        "the dict of mmengine's Runner",
        "=== train.py\nfrom mmengine.runner import Runner\ndef main():\n"
        "    trains = dict(batch_size=32, dataset='train')\n"
        "    runner = Runner(model='m', work_dir='out', train_dataloader=trains, val_dataloader=dict(dataset='val'))\n"
        "    runner.train()\nmain()\n",
        setting=KEPT,
    ),
    Site(
        "what mmengine's Runner takes from elsewhere",
        "=== train.py\nfrom mmengine.runner import Runner\nimport make\n"
        "Runner(model='m', work_dir='out', train_dataloader=make.told()).train()\n"
        "=== make.py\ndef told():\n    return {'dataset': 'train', 'num_workers': 2}\n",
        edited=(),
        said="Set num_workers=4 in the train_dataloader of mmengine's Runner",
    ),
    Site(
        "a config of mmengine",
        "=== train.py\nfrom mmengine.runner import Runner\nfrom config import cfg\n"
        "if 'type' in cfg:\n    runner = None\nelse:\n    runner = Runner.from_cfg(cfg)\nrunner.train()\n"
        "=== config.py\ncfg = dict(model='m', work_dir='out', train_dataloader=dict(dataset='train', num_workers=2))\n",
        edited=(),
        said="Set num_workers=4 in the train_dataloader of the config, or by `--cfg-options`",
    ),
    Site(
        "training arguments of its own",
        "=== train.py\nfrom dataclasses import dataclass\n"
        "from transformers import HfArgumentParser, Trainer, TrainingArguments\n@dataclass\n"
        "class Mine(TrainingArguments):\n"
        "    dataloader_num_workers: int = 1\nparser = HfArgumentParser((Mine,))\n"
        "args = parser.parse_args_into_dataclasses()[0]\ntrainer = Trainer('model', args=args)\ntrainer.train()\n",
    ),
]

CLI = "from lightning.pytorch.cli import LightningCLI\n"
PART = (
    "class Rows:\n"
    "    def __init__(self, num_workers: int = 1, pin_memory: bool = False):\n"
    "        self.num_workers = num_workers\n"
    "        self.pin_memory = pin_memory\n"
    "    def train_dataloader(self):\n"
    "        return DataLoader('train', num_workers=self.num_workers, pin_memory=self.pin_memory)\n"
)  # fmt: skip
APART = f"import data\n{CLI}LightningCLI()\n=== data.py\n{HEAD}{PART}"

CLASS_OPTIONS = [
    one(
        "Lightning's CLI",
        f"{CLI}{PART}LightningCLI(None, Rows)\n",
        words="train.py fit",
        said="`--data.num_workers 4` on the command line",
    ),
    one(
        "an option of Lightning's CLI",
        f"{CLI}{PART}LightningCLI(None, datamodule_class=Rows)\n",
        words="train.py fit --data.num_workers=2",
        started="train.py fit --data.num_workers=4",
        edited=(),
        said="write `--data.num_workers=4` there",
    ),
    one(
        "a CLI of the user's",
        f"{CLI}{PART}class Own(LightningCLI):\n    pass\n\nOwn(None, Rows)\n",
        words="train.py fit --data.pin_memory false",
        started="train.py fit --data.pin_memory true",
        edited=(),
        setting=PINNED,
        said="write `--data.pin_memory true` there",
    ),
    Site(
        "the file of Lightning's CLI",
        f"=== train.py\n{HEAD}{CLI}{PART}LightningCLI(None, Rows)\n=== a.yaml\ndata:\n  num_workers: 1  # a core\n",
        words="train.py fit -c a.yaml",
        edited=("a.yaml",),
    ),
    Site(
        "the file of Lightning's CLI in front",
        f"=== train.py\n{HEAD}{CLI}{PART}LightningCLI(None, Rows)\n"
        "=== a.yaml\nfit:\n  data:\n    num_workers: 1\ntest:\n  data:\n    num_workers: 2\n",
        words="train.py --config a.yaml fit",
        edited=("a.yaml",),
    ),
    Site(
        "two files of Lightning's CLI",
        f"=== train.py\n{HEAD}{CLI}{PART}LightningCLI(None, Rows)\n"
        "=== a.yaml\ndata:\n  num_workers: 2\n=== b.yaml\ndata:\n  num_workers: 1\n",
        words="train.py fit --config a.yaml --config=b.yaml",
        edited=("b.yaml",),
    ),
    Site(
        "a class that a file chooses",
        f"=== train.py\n{APART}=== a.yaml\ndata:\n  class_path: data.Rows\n  init_args:\n    num_workers: 1\n",
        words="train.py fit --config a.yaml",
        edited=("a.yaml",),
    ),
    Site(
        "a class that a word chooses",
        f"=== train.py\n{APART}",
        words="train.py fit --data Rows",
        edited=("data.py",),
        said="`--data.init_args.num_workers 4` on the command line",
    ),
    Site(
        "what a chosen class takes",
        f"=== train.py\n{APART}",
        words="train.py fit --data=data.Rows --data.num_workers 2",
        started="train.py fit --data=data.Rows --data.num_workers 4",
        edited=(),
        said="write `--data.num_workers 4` there",
    ),
    Site(
        "a dataclass that a word chooses",
        f"=== train.py\nimport data\n{CLI}LightningCLI()\n=== data.py\n{HEAD}from dataclasses import dataclass\n"
        "@dataclass\nclass Rows:\n    num_workers: int = 1\n"
        "    def train_dataloader(self):\n        return DataLoader('train', num_workers=self.num_workers)\n",
        words="train.py fit --data Rows --data.num_workers 2",
        started="train.py fit --data Rows --data.num_workers 4",
        edited=(),
        said="write `--data.num_workers 4` there",
    ),
    one(
        "a class that another parser's word names",
        f"import argparse\n{PART}parser = argparse.ArgumentParser()\nparser.add_argument('--data')\n"
        "globals()[parser.parse_args().data]().train_dataloader()\n",
        words="train.py --data Rows",
        overridden=True,
    ),
    one(
        "a class that the CLI has no part for",
        f"{CLI}{PART}class Other(Rows):\n    pass\n\nLightningCLI(None, Other)\n",
        words="train.py fit",
        overridden=True,
    ),
]

SITES = [
    *IN_THE_CALL,
    *BY_A_LIBRARY,
    *HANDED_ON,
    *CONSTANTS,
    *FUNCTIONS,
    *CLASSES,
    *OPTIONS,
    *CLASS_OPTIONS,
    *DOCUMENTS,
    *TRAINERS,
]

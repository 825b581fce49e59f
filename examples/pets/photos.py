"""Makes a small folder of photo-sized JPEG files, `<class>/<number>.jpg`, so that the example needs no download.

The pictures are drawn, not photographed, but they are as big and as costly to decode as a camera's: 500 x 375 pixels
of texture with shading, noise and a subject whose outline and coat depend on the class.
"""

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

CLASSES = ("abyssinian", "beagle", "bengal", "pug", "samoyed", "siamese")
PER_CLASS = 60
COATS = ((190, 130, 80), (170, 110, 60), (200, 150, 70), (150, 125, 105), (225, 225, 220), (205, 190, 170))
WIDTH, HEIGHT = 500, 375


def make_photos(folder: Path) -> None:
    """Fill `folder` unless it is there already. Safe to be killed, and to be started twice at once."""
    if (folder / "COMPLETE").exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    print(f"drawing {len(CLASSES) * PER_CLASS} pictures into {folder}", flush=True)
    draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        draft.chmod(0o755)
        for label, name in enumerate(CLASSES):
            (draft / name).mkdir()
            for number in range(PER_CLASS):
                rng = np.random.default_rng([label, number])
                _photo(label, rng).save(draft / name / f"{number:03}.jpg", quality=90)
        (draft / "COMPLETE").touch()
        try:
            os.rename(draft, folder)
        except OSError:
            if not (folder / "COMPLETE").exists():  # somebody else's folder, not ours to replace
                raise SystemExit(
                    f"{folder} exists but was not made here; remove it or set another in the config"
                ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _photo(label: int, rng: np.random.Generator) -> Image.Image:
    background = _texture(rng, coarse=3 + int(rng.integers(4)), tint=rng.uniform(60, 200, 3))
    coat = _texture(rng, coarse=8 + 6 * label, tint=np.array(COATS[label]) + rng.normal(0, 12, 3))
    if label in (2, 5):
        stripes = np.sin(np.arange(WIDTH) / (4 + 3 * label) + rng.uniform(0, 6))[None, :, None] > 0.4
        coat = np.where(stripes, coat * 0.55, coat)
    subject = Image.new("L", (WIDTH, HEIGHT))
    draw = ImageDraw.Draw(subject)
    x, y = rng.uniform(170, 330), rng.uniform(150, 220)
    size = rng.uniform(70, 110)
    stretch = 1.0 + 0.15 * label
    draw.ellipse((x - size * stretch, y - size * 0.6, x + size * stretch, y + size * 1.1), fill=255)
    draw.ellipse((x - size * 0.6, y - size * 1.3, x + size * 0.6, y - size * 0.2), fill=255)
    for side in (-1, 1):
        ear = x + side * size * 0.4
        if label % 2:
            draw.ellipse((ear - size * 0.2, y - size * 1.3, ear + size * 0.2, y - size * 0.5), fill=255)
        else:
            draw.polygon(
                [(ear - size * 0.2, y - size), (ear + size * 0.2, y - size), (ear + side * 8, y - size * 1.7)], fill=255
            )
    mask = np.asarray(subject.filter(ImageFilter.GaussianBlur(2)), np.float32)[:, :, None] / 255
    picture = background * (1 - mask) + coat * mask + rng.normal(0, 6, (HEIGHT, WIDTH, 3)).astype(np.float32)
    return Image.fromarray(picture.clip(0, 255).astype(np.uint8))


def _texture(rng: np.random.Generator, coarse: int, tint: np.ndarray) -> np.ndarray:
    """Noise of several scales around a colour, as float32 of shape (HEIGHT, WIDTH, 3)."""
    texture = np.zeros((HEIGHT, WIDTH), np.float32)
    for octave in range(4):
        cells = coarse * 2**octave
        grid = (rng.random((cells, cells)) * 255).astype(np.uint8)
        layer = Image.fromarray(grid).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
        texture += (np.asarray(layer, np.float32) - 128) * 0.6 / 2**octave
    return texture[:, :, None] + np.asarray(tint, np.float32)

"""Windows that only load batches and compute nothing."""

from __future__ import annotations

from typing import Any, Callable

from ..knobs import GuestContext, registry
from ..loader.attributes import samples_told
from ..loader.feed import IndexStream
from ..loop.batches import batch_samples
from ..process.originals import now
from ..wire.messages import Grant, WindowDone
from .batch_cache import BatchCache
from .window import FedRun, WindowFailed


def loader_only(
    grant: Grant,
    context: GuestContext,
    loader: Any,
    stream: IndexStream,
    batch_cache: BatchCache,
    took: Callable[[], None],
) -> WindowDone:
    """Take batches and drop them, to measure how fast loading is without computing. `took` is called after each."""
    run = FedRun(grant, context, lambda: None, loader, stream, batch_cache, None)
    feed = run.feed
    samples = 0.0
    try:
        feed.open()

        def take() -> Any:
            try:
                batch = feed.next()
            except StopIteration:
                feed.close()
                feed.open()
                batch = feed.next()
            took()
            return batch

        for _ in range(grant.lead_in):
            batch_cache.offer(take())
        run.around.begin()
        began = now()
        for _ in range(grant.steps):
            samples += batch_samples(take(), samples_told(loader))
        ended = now()
        run.around.end()
        known = registry()
        looked = {
            name: known[name].effect_on_loading(value, feed) for name, value in grant.setting.items() if name in known
        }
        effect = {name: seen for name, seen in looked.items() if seen is not None}
    except StopIteration:
        raise WindowFailed("the loader gave no batch") from None
    except Exception as error:
        raise WindowFailed(run.reason(error)) from error
    finally:
        feed.close()
    return WindowDone(
        window=grant.window,
        status="ok",
        steps=grant.steps,
        samples=samples,
        seconds=ended - began,
        lead_in_steps=grant.lead_in,
        wait_seconds=ended - began,
        effect=effect,
        started=run.started,
        ended=ended,
        around=run.around.told(),
        stretches=run.around.stretches,
    )

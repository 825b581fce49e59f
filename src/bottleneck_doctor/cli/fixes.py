"""`doctor fixes`: the catalogue of fixes, or one of them."""

from __future__ import annotations

import click

from bottleneck_doctor.cli._placement import Command
from bottleneck_doctor.errors import Exit


@click.command("fixes", cls=Command)
@click.argument("identifier", metavar="[ID]", required=False)
def command(identifier: str | None) -> Exit:
    """List the fixes that `doctor run` can try.

    With ID, say why that fix can help, how to make the change, and where the advice comes from.
    """
    from bottleneck_doctor.cli._terminal import say
    from bottleneck_doctor.fixes import catalogue

    fixes = catalogue()
    if identifier is not None:
        from bottleneck_doctor.cli._entrypoint import check_fix_ids

        check_fix_ids([identifier], {fix.id: f"{fix.title} {fix.how}" for fix in fixes})
        fix = next(fix for fix in fixes if fix.id == identifier)
        say(f"{fix.id}: {fix.title}\n\nwhy     {fix.why}\nhow     {fix.how}\nrisk    {fix.risk}\nsource  {fix.source}")
        if fix.on_request:
            say(f"tried   on request: {fix.on_request}")
        return Exit.DONE
    width = max((len(fix.id) for fix in fixes), default=0)
    for fix in fixes:
        say(f"{fix.id:<{width}}  {fix.risk:<9}  {fix.title}{' (on request)' if fix.on_request else ''}")
    return Exit.DONE

"""What a setting asks for, as steps: each writes one edit into the user's files as the steps before it left them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Setting, SettingValue
from bottleneck_doctor.edits import own_options
from bottleneck_doctor.edits.attention_call import attention_change
from bottleneck_doctor.edits.autocast_step import autocast_step, under_autocast
from bottleneck_doctor.edits.before_loop import before_loop_change
from bottleneck_doctor.edits.call import call_change, makes_call, set_call, statement_change
from bottleneck_doctor.edits.copied_ahead import copied_ahead_change
from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.direct_call import direct_call_change
from bottleneck_doctor.edits.drafts import Drafts, Told
from bottleneck_doctor.edits.given_argument import given_argument_change
from bottleneck_doctor.edits.loader_steps import GROUPED, grouped_step, of_the_loader
from bottleneck_doctor.edits.memory_format import memory_format_change
from bottleneck_doctor.edits.named_call import set_named, set_seen, where_made
from bottleneck_doctor.edits.of_model import of_model_change
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.origin.running import Running
from bottleneck_doctor.edits.own_function import own_function_change
from bottleneck_doctor.edits.recorded_value import recorded_value_change
from bottleneck_doctor.edits.reduced_pictures import reduced_folder_change, reduced_pictures_change
from bottleneck_doctor.edits.removal import removal_change
from bottleneck_doctor.edits.step import Outcome, Step, Steps, at, files, first_of, noting, sites
from bottleneck_doctor.edits.switch import set_switches, switches_change
from bottleneck_doctor.edits.trainer_arguments import set_trainer_arguments
from bottleneck_doctor.edits.ultralytics_callback import added, set_callback
from bottleneck_doctor.edits.uncompiled import uncompiled_change
from bottleneck_doctor.knobs import (
    Argument,
    AttentionCall,
    AutocastBlock,
    BeforeLoop,
    Call,
    Callback,
    CopiedAhead,
    GivenArgument,
    GroupedRows,
    KnobSpec,
    MemoryFormat,
    OfModel,
    OwnFunction,
    RecordedValues,
    ReducedPictures,
    Removal,
    SmallerPictures,
    Switch,
    Uncompiled,
    Variables,
)
from bottleneck_doctor.runtime.wire.messages import Found, Site
from bottleneck_doctor.wording import words


def steps_of(setting: Setting, found: Found, running: Running) -> Steps:
    made = Steps()
    of_the_loader(made, setting, found, running)
    # Autocast comes last of what stands above the forward pass, so that nothing else comes under it.
    for each in sorted(knobs.knobs_of(setting), key=lambda each: isinstance(each.edit, AutocastBlock)):
        edit, value = each.edit, setting[each.name]
        before = len(made.steps)
        if isinstance(edit, AutocastBlock) and isinstance(value, str):
            _add(made, autocast_step(value, found, running), f"put {under_autocast(value, found)}")
        elif isinstance(edit, MemoryFormat):
            _add(made, _in_format(edit.name, found), _formatted(edit.name))
        elif isinstance(edit, OfModel):
            call = edit.call(value)
            _add(made, _of_model(call, found), f"call `model.{call}` before the training loop")
        elif isinstance(edit, Uncompiled):
            made.steps.append(_uncompiled(found, running))
        elif isinstance(edit, Removal):
            made.steps += _taken_out(edit.calls(found))
        elif isinstance(edit, GivenArgument):
            made.steps += _given(edit, found)
        elif isinstance(edit, (AttentionCall, RecordedValues)):
            change = attention_change if isinstance(edit, AttentionCall) else recorded_value_change
            how = f"{edit.how[:1].upper()}{edit.how[1:]}."
            made.steps += [at(site, change, how) for site in edit.places(found)]
        elif isinstance(edit, ReducedPictures):
            made.steps += _opened_smaller(edit, found, made)
        elif isinstance(edit, GroupedRows):
            _add(made, grouped_step(edit.part(found), found, running), GROUPED)
        elif isinstance(edit, CopiedAhead):
            _add(made, _copied_ahead(found), _AHEAD)
        elif isinstance(edit, BeforeLoop):
            made.steps += _before_loop(edit, edit.of(value), found)
        elif isinstance(edit, Variables):
            made.notes.append(
                f"And put `{edit.code(value, found.device)}` before the command that starts the training."
            )
        elif isinstance(edit, Argument):
            made.steps.append(_named(edit.under(value), found, running))
        elif isinstance(edit, OwnFunction):
            made.steps += [_in_place(edit, edit.more(value), site, running) for site in sites(found)[:1]]
        arguments = each.of_trainer(value, found)
        if arguments:
            made.steps[before:] = [_in_trainer(arguments, step, found, running) for step in made.steps[before:]]
        made.steps[before:] = _by_callback(each, value, made.steps[before:], found, running)
        if each.options:
            made.steps[before:] = [_naming(each.options, step, running) for step in made.steps[before:]]
    switches: dict[Switch, SettingValue] = {}
    for each in knobs.knobs_of(setting):
        if isinstance(each.edit, Switch):
            value, arguments = setting[each.name], each.of_trainer(setting[each.name], found)
            calls = each.edit.wraps(found)
            if calls:
                made.steps += _called_directly(each.edit, calls)
            elif arguments:
                made.steps.append(_switched_in_trainer(each.edit, value, arguments, found, running))
            else:
                switches[each.edit] = value
    if switches:
        made.steps.append(lambda drafts: _switched(drafts, switches, found, Follower(drafts, running)))
        codes = [edit.text.format(value=value) for edit, value in switches.items() if edit.inserted]
        made.steps += [_unless_written(made.steps.pop(), codes, found, running)] if codes else []
    for each in knobs.knobs_of(setting):
        if isinstance(each.edit, Call):
            code, library = each.edit.text.format(value=setting[each.name]), each.edit.overruled_by(found)
            steps = _called(code, found, running) if library is None else _called_after(code, library, found)
            made.steps += _by_callback(each, setting[each.name], steps, found, running)
    return made


def _in_trainer(arguments: Mapping[str, object], otherwise: Step, found: Found, running: Running) -> Step:
    """The step that gives transformers' trainer these arguments, where one trains; another step where none does."""

    def step(drafts: Drafts) -> Outcome:
        told = _told_in_trainer(drafts, arguments, found, running)
        return otherwise(drafts) if told is None else Outcome(told)

    return step


def _by_callback(
    knob: KnobSpec, value: SettingValue, steps: Iterable[Step], found: Found, running: Running
) -> list[Step]:
    """The steps of a knob, each by the callback that does the same where Ultralytics trains, if there is one."""
    callback = knob.of_ultralytics(value, found)
    return [each if callback is None else _called_back(callback, each, found, running) for each in steps]


def _called_back(callback: Callback, otherwise: Step, found: Found, running: Running) -> Step:
    """The step that has a callback of Ultralytics' trainer do it, where that trains; another step where it does not."""

    def step(drafts: Drafts) -> Outcome:
        site = found.forward_site
        told = None if site is None else set_callback(drafts, site, callback, running)
        return otherwise(drafts) if told is None else Outcome([told])

    return step


def _told_in_trainer(
    drafts: Drafts, arguments: Mapping[str, object], found: Found, running: Running
) -> list[Told] | None:
    site = found.forward_site
    return None if site is None else set_trainer_arguments(drafts, site.file, site.line, arguments, running)


def _switched_in_trainer(
    switch: Switch, value: SettingValue, arguments: Mapping[str, object], found: Found, running: Running
) -> Step:
    """The step that switches what is written in the user's files; where nothing is, by the trainer's arguments."""

    def step(drafts: Drafts) -> Outcome:
        outcome = _switched(drafts, {switch: value}, found, Follower(drafts, running))
        told = None if outcome.told else _told_in_trainer(drafts, arguments, found, running)
        return outcome if told is None else Outcome(told)

    return step


def _add(made: Steps, step: Step | None, otherwise: str) -> None:
    """A step, or what is to be done where nobody knows the line of it."""
    if step is None:
        made.by_hand.append(f"And {otherwise}.")
    else:
        made.steps.append(step)


def _naming(options: Sequence[str], step: Step, running: Running) -> Step:
    """The same step, whose note also names the options that the program itself has for it."""

    def named(drafts: Drafts) -> Outcome:
        outcome = step(drafts)
        told = list(outcome.told)
        if told:
            said = " ".join(each.note for each in told)
            note = own_options.note(options, Follower(drafts.as_they_are, running), said)
            told += [Told(told[-1].file, told[-1].line, note)] if note else []
        return Outcome(told, outcome.elsewhere, outcome.codes)

    return named


# -- the forward pass --------------------------------------------------------------------------------------------------


def _in_format(name: str, found: Found) -> Step | None:
    if found.forward_site is None:
        return None
    told = found.facts.get(name, {})
    several, pictures = told.get("several", False), not told.get("no_pictures", False)
    text, by_hand = _formatted(name, several=several), several or told.get("own_to", False)
    return at(
        found.forward_site,
        lambda source, line: None if by_hand else memory_format_change(source, line, name, pictures=pictures),
        f"{words.capitalised(text)}.",
    )


def _of_model(call: str, found: Found) -> Step | None:
    if found.forward_site is None:
        return None
    otherwise = f"Call `model.{call}` once before the training loop."
    return at(found.forward_site, lambda source, line: of_model_change(source, line, call), otherwise)


_AHEAD = (
    "fetch one batch more than the loop has, copy it to the device under `with torch.cuda.stream(...)` with "
    "`non_blocking=True`, and let the training's stream wait for that stream before the batch is used"
)


def _copied_ahead(found: Found) -> Step | None:
    if found.forward_site is None:
        return None
    return at(found.forward_site, copied_ahead_change, f"{words.capitalised(_AHEAD)}.")


def _formatted(name: str, *, several: bool = False) -> str:
    made = "where each of the models is made" if several else "where the model is made"
    return (
        f"write `model = model.to(memory_format=torch.{name})` {made}, and "
        f"`images = images.to(memory_format=torch.{name})` before it is called"
    )


def _uncompiled(found: Found, running: Running) -> Step:
    """The step that takes compiling out of all files that are known."""

    def step(drafts: Drafts) -> Outcome:
        told = []
        for file in dict.fromkeys([*files(found), *running.files]):
            text = drafts.text(file)
            made = None if text is None else uncompiled_change(text)
            if made is not None:
                if made.edited:
                    drafts.write(file, made.edited)
                told.append(Told(file, made.line, made.note))
        return Outcome(told, elsewhere=[] if told else [_TO_COMPILE_NOTHING])

    return step


_TO_COMPILE_NOTHING = (
    "leave out `torch.compile`, or put `TORCH_COMPILE_DISABLE=1` before the command that starts the training"
)


# -- before training, and around it ------------------------------------------------------------------------------------


def _called(code: str, found: Found, running: Running) -> Iterator[Step]:
    """A call before training begins."""
    for first in sites(found)[:1]:

        def step(drafts: Drafts, first: Site = first) -> Outcome:
            follower = Follower(drafts, running)
            made = [file for file in files(found) if makes_call(follower.tree(file), code)]
            site = Site(made[0], 1) if made else _at_the_start(first, follower)
            told = set_call(drafts, follower, site.file, code)
            in_text = at(site, lambda text, line: call_change(text, code), f"Call `{code}` before training begins.")
            return Outcome(told) if told else in_text(drafts)

        yield step


def _in_place(edit: OwnFunction, more: Sequence[str], first: Site, running: Running) -> Step:
    """A function of the user's own in the place of one of torch's, and more statements behind it."""

    def step(drafts: Drafts) -> Outcome:
        site = _at_the_start(first, Follower(drafts, running))
        how = f"Define a function `{edit.name}` and write `{edit.text}` before training begins."
        return at(
            site, lambda text, line: own_function_change(text, edit.name, [edit.function, edit.text, *more]), how
        )(drafts)

    return step


def _at_the_start(first: Site, follower: Follower) -> Site:
    """Where what is done before training begins is looked for: in the script that is started, if it is the user's own
    and imports torch; else in the first file that is known."""
    script = follower.running.script
    if script is None or script == first.file or "-packages/" in script.replace("\\", "/"):
        return first
    tree = follower.tree(script)
    return first if tree is None or tree.torch_name is None else Site(script, 1)


def _called_after(code: str, library: Site, found: Found) -> Iterator[Step]:
    """A call that has no effect before a library's own, which it makes when training begins."""
    note = _after_a_library("call", code, library)
    for site in sites(found)[:1]:
        yield at(site, lambda text, line: None, f"{words.capitalised(note)}.")


def _after_a_library(doing: str, code: str, library: Site) -> str:
    """What to do about a value that a library sets itself, as a sentence without its end."""
    file = library.file.replace("\\", "/").rpartition("-packages/")[2]
    how = f"{doing} `{code}` when training has begun, as in a callback, or use an option of the library's"
    if file.startswith("ultralytics/") and "deterministic" in code:
        how = "pass `deterministic=False` to `model.train(...)`"
    elif file.startswith("ultralytics/") and code.endswith(")"):
        how = f"write `{added('model', Callback('on_train_start', code))}` before `model.train(...)`"
    return f"{how}: `{file}` sets it, too (line {library.line}), which would undo what stands at the top of the script"


def _unless_written(switch: Step, codes: Sequence[str], found: Found, running: Running) -> Step:
    """The step that switches what is written somewhere, and writes those of `codes` that are written nowhere."""

    def step(drafts: Drafts) -> Outcome:
        outcome = switch(drafts)
        for code in [each for each in outcome.codes if each in codes]:
            for site in sites(found)[:1]:
                there = _at_the_start(site, Follower(drafts, running))
                new = at(there, _written(code), f"Write `{code}` before training begins.")(drafts)
                rest = [each for each in outcome.codes if each != code]
                outcome = Outcome([*outcome.told, *new.told], [*outcome.elsewhere, *new.elsewhere], rest)
        return outcome

    return step


def _written(code: str) -> Callable[[str, int], ChangeText | None]:
    return lambda text, line: statement_change(text, code)


def _before_loop(edit: BeforeLoop, lines: Sequence[str], found: Found) -> Iterator[Step]:
    code = words.listed([f"`{each}`" for each in lines])
    otherwise = f"Call {code} once before the training loop, after the model and the data set are made."
    change = partial(before_loop_change, lines=lines, module=edit.imports)
    for site in sites(found)[:1]:
        # A function that the loop calls may have a loop of its own around the model.
        yield first_of([site, *found.forward_path], lambda _: change, noting(site, otherwise))


def _taken_out(calls: Sequence[tuple[str, Site]]) -> Iterator[Step]:
    """The steps that take calls out, one a file."""
    for here in _by_file(calls):
        gone = words.listed([f"`{name}()` in line {site.line}" for name, site in here])
        yield _at_calls(here, removal_change, f"Remove {gone}.")


def _called_directly(edit: Switch, calls: Sequence[tuple[str, Site]]) -> Iterator[Step]:
    """The steps that call what calls wrap, one a file."""

    def change(text: str, here: Sequence[tuple[str, int]]) -> ChangeText | None:
        return direct_call_change(text, here, edit.wrapper_arguments)

    for here in _by_file(calls):
        wrapped = words.listed([f"what `{name}` wraps in line {site.line}" for name, site in here])
        yield _at_calls(here, change, f"Call {wrapped} directly.")


def _given(edit: GivenArgument, found: Found) -> Iterator[Step]:
    """The steps that give calls an argument, one a file."""

    def change(text: str, calls: Sequence[tuple[str, int]]) -> ChangeText | None:
        return given_argument_change(text, calls, edit)

    for here in _by_file(edit.calls(found)):
        lines = list(dict.fromkeys(str(site.line) for _, site in here))
        where = f"the call in line {lines[0]}" if len(lines) == 1 else f"the calls in lines {words.listed(lines)}"
        yield _at_calls(here, change, f"Pass `{edit.name}={edit.value}` in {where}.")


def _opened_smaller(edit: ReducedPictures, found: Found, made: Steps) -> list[Step]:
    """The steps that decode pictures smaller where they are opened, one a file."""
    asked = edit.of(found)
    if asked is None:
        return []
    how, site = _smaller(asked), found.loader_site
    if asked.folder and site is not None:
        return [at(site, lambda text, line: reduced_folder_change(text, line, asked.side), words.capitalised(how))]
    if not asked.calls:
        made.by_hand.append(f"And {how}")

    def change(text: str, calls: Sequence[tuple[str, int]]) -> ChangeText | None:
        return reduced_pictures_change(text, calls, asked)

    return [_at_calls(here, change, words.capitalised(how)) for here in _by_file(asked.calls)]


def _smaller(asked: SmallerPictures) -> str:
    if asked.library == "OpenCV":
        return f"read the pictures with `cv2.imread(file, cv2.IMREAD_REDUCED_COLOR_{asked.factor})`."
    code = f"`image.draft(image.mode, ({asked.side}, {asked.side}))` behind `image = Image.open(...)`"
    return f"give `ImageFolder` a `loader=` that calls {code}." if asked.folder else f"call {code}."


def _by_file(calls: Sequence[tuple[str, Site]]) -> list[list[tuple[str, Site]]]:
    files = dict.fromkeys(site.file for _, site in calls)
    return [[each for each in calls if each[1].file == file] for file in files]


def _at_calls(
    calls: Sequence[tuple[str, Site]],
    change: Callable[[str, Sequence[tuple[str, int]]], ChangeText | None],
    otherwise: str,
) -> Step:
    """The step that edits calls of one file: what is called, and where. `otherwise`: the note where it can't."""
    first = calls[0][1]

    def step(drafts: Drafts) -> Outcome:
        by_now = [(name, drafts.line(first.file, site.line)) for name, site in calls]
        return at(first, lambda text, line: change(text, by_now), otherwise)(drafts)

    return step


def _named(edit: Argument, found: Found, running: Running) -> Step:
    """The step that edits the calls that were seen, or else those of a name in the first file that has any."""

    def step(drafts: Drafts) -> Outcome:
        seen = edit.made(found)
        told = set_seen(drafts, edit, seen, running)
        for file in files(found):
            told = told or set_named(drafts, file, edit, running)
        told = told or where_made(drafts, edit, seen)
        return Outcome(told, [] if told else [edit.otherwise])

    return step


def _switched(drafts: Drafts, switches: Mapping[Switch, SettingValue], found: Found, follower: Follower) -> Outcome:
    """What is switched, a file each, where the loader is made and the model and the backward pass are called; of what
    is switched on in none of them, the code, or the sentence of those that have one."""
    left = dict(switches)
    told: list[Told] = []
    for file in files(found):
        text = drafts.text(file)
        made = None if text is None or not left else switches_change(text, left)
        if made is not None:
            if made.text.edited:
                drafts.write(file, made.text.edited)
            told.append(Told(file, made.text.line, made.text.note))
            left = {switch: value for switch, value in left.items() if switch not in made.found}
    for file in files(found) if left else ():
        done, switched = set_switches(drafts, follower.anew(), file, left)
        told += done
        left = {switch: value for switch, value in left.items() if switch not in switched}
    codes: list[str] = []
    sentences: list[str] = []
    for switch, value in left.items():
        code, library = switch.text.format(value=value), switch.overruled_by(found)
        if library is not None:
            sentences.append(_after_a_library("write", code, library))
        elif switch.otherwise:
            sentences.append(switch.otherwise)
        else:
            codes.append(code)
    return Outcome(told, sentences, codes)

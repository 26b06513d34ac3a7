"""What each step of a mechanism is, in words, with the bytes that were seen."""

from __future__ import annotations

from readerkit.evidence.played import PlayedRun, PlayedStep
from readerkit.model.language import Say
from readerkit.wording.numbers import format_bytes

PHASES = {
    "forward": "forward",
    "backward": "backward",
    "update": "update",
    "reduce-scatter": "reduce-scatter",
    "all-gather": "all-gather",
    "reduce": "reduce",
    "broadcast": "broadcast",
    "dispatch": "dispatch",
    "experts": "experts",
    "combine": "combine",
}
"""The word of each phase."""
SLOTS = (
    "at the expert",
    "by expert",
    "early queries",
    "gradients",
    "late queries",
    "optimizer state",
    "parameters",
    "tokens again",
)
"""Names of what ranks have, that are words; the others are the same anywhere."""
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce")
"""What all ranks do together, by one call."""


def phase_of(phase: str, say: Say) -> str:
    """Return the word of a phase."""
    return say(PHASES[phase]) if phase else ""


def slot_name(name: str, say: Say) -> str:
    """Return what something that ranks have is called: ``layers.0 parameters``."""
    of, _, last = name.rpartition(" ")
    if name in SLOTS:
        return say(name)
    return f"{of} {say(last)}" if last in SLOTS else name


def told(run: PlayedRun, step: PlayedStep, say: Say) -> str:
    """Return a step as a sentence."""
    if step.sent:
        return _sent(step, say)
    if step.does in OPERATIONS:
        one = say("{op} of {what}: {bytes}")
        return one.format(
            op=step.does.replace("_", "-"), what=step.of, bytes=format_bytes(step.bytes)
        )
    what = {
        "start": say("What each rank begins with"),
        "wait": say("waited for {what}: it is there"),
        "compute": say("{what} is computed"),
        "ready": say("the gradient of {what} is ready"),
        "free": say("{what} is freed"),
        "update": say("each rank updates what it owns"),
        "cut": say("each rank takes its part of {what}"),
        "route": say("the router chooses an expert for each token"),
    }[step.does]
    return what.format(what=step.of)


def _sent(step: PlayedStep, say: Say) -> str:
    """Return who sends how much: one number where all send the same."""
    sizes = {message.bytes for message in step.sent}
    senders = {message.source for message in step.sent}
    least, most = min(sizes), max(sizes)
    if step.does == "all_to_all":
        one = say("all-to-all of {what}: {messages} messages, {bytes} at most")
        return one.format(
            what=step.of, messages=len(step.sent), bytes=format_bytes(most)
        )
    if len(step.sent) == 1:
        message = step.sent[0]
        one = say("rank {source} sends {bytes} to rank {target}")
        return one.format(
            source=message.source,
            target=message.target,
            bytes=format_bytes(message.bytes),
        )
    if least == most:
        one = say("{messages} messages of {bytes} at once, from {ranks} ranks")
    else:
        one = say("{messages} messages of {least} to {bytes}, from {ranks} ranks")
    return one.format(
        messages=len(step.sent),
        ranks=len(senders),
        least=format_bytes(least),
        bytes=format_bytes(most),
    )

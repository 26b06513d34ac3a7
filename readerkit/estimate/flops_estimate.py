"""FLOPs of a step and a run as an estimate: MFU and HFU, time, days and cost."""

from __future__ import annotations

from typing import Any

from readerkit.errors import EstimateError
from readerkit.estimate.checks import (
    check_amount,
    check_count,
    check_fraction,
    check_training,
)
from readerkit.estimate.flops import (
    FORWARD,
    KORTHIKANTI,
    RECOMPUTED,
    TOKENS,
    attention_words,
    forward_flops_per_token,
    recomputed_flops_per_token,
    step_flops,
)
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.parameters import SOURCE, active_parameter_count
from readerkit.estimate.quantity import Number
from readerkit.estimate.shape import Shape
from readerkit.wording.numbers import SECONDS_PER_DAY

KAPLAN_DAY = "Kaplan et al. 2001.08361, section 1.3"
KAPLAN = "Kaplan et al. 2001.08361, section 2.1"
PEAK = "peak as given: of a GPU that ships, dense 16-bit as sold"
PF_DAY = 10**15 * SECONDS_PER_DAY
NARAYANAN = "Narayanan et al. 2104.04473"


def estimate_flops(
    shape: Shape,
    *,
    batch: int,
    sequence: int,
    recompute: str = "none",
    attention: str = "full",
    gpus: int | None = None,
    peak_flops_per_s: Number | None = None,
    seconds: Number | None = None,
    mfu: Number | None = None,
    tokens: Number | None = None,
    usd_per_gpu_hour: Number | None = None,
    tokens_per_s: Number | None = None,
    flops_per_s_per_gpu: Number | None = None,
    before_s: Number | None = None,
) -> Estimate:
    """Return the FLOPs of a step and of a run; with a time its MFU, or the other way.

    A time may be measured as a rate: tokens of the whole job, or FLOP/s of one GPU.
    ``before_s`` is the step of another setting, which this one is compared with.

    Raises:
        EstimateError: a time in which no GPU of this peak can do it.
    """
    step_flops(shape, batch=batch, sequence=sequence, attention=attention)  # checks
    sheet = Worksheet("FLOPs of a step")
    words = attention_words(shape, attention)
    _flops(sheet, shape.named(), batch, sequence, recompute, attention, words)
    if recompute == "selective":
        sheet.notes.append(
            "The paper of selective recompute counts its FLOPs three times as high "
            "(s/3h instead of s/4.5h): 2.7% for GPT-3 where one more forward is 0.9%."
        )
    if tokens is not None:
        _run(sheet, check_training("tokens", tokens, of=batch * sequence), words)
    at = {
        "seconds": seconds,
        "MFU": mfu,
        "tokens/s": tokens_per_s,
        "FLOP/s of a GPU": flops_per_s_per_gpu,
    }
    measured = {name: value for name, value in at.items() if value is not None}
    if not (gpus and peak_flops_per_s and measured):
        return sheet.estimate()
    sheet.given("GPUs", check_count("gpus", gpus), "that work on the step")
    sheet.given("peak", peak_flops_per_s, "FLOP/s of one GPU")
    _utilization(sheet, words, *measured.popitem())
    if before_s is not None:
        _speed_up(sheet, before_s)
    if recompute == "selective":
        sheet.write(
            f"""
            HFU as its paper counts [fraction] = (model FLOPs
                + 3 × (hardware FLOPs - model FLOPs)) / (step time × GPUs × peak)
                | {KORTHIKANTI}
                | the scores of a forward counted three times more: s/3h
            """
        )
    if tokens is not None:
        _duration(sheet, usd_per_gpu_hour)
    return sheet.estimate()


def _duration(sheet: Worksheet, usd_per_gpu_hour: Number | None) -> None:
    """Write down how long a whole run takes, and what it costs at a price."""
    sheet.write(
        f"""
        training [days] = D / tokens in a step × step time / {SECONDS_PER_DAY}
            | a count | step after step, no failure
        GPU-hours [GPU-hours] = GPUs × training × 24
            | a count | all GPUs, all the time
        """
    )
    if usd_per_gpu_hour is not None:
        check_amount("usd-per-gpu-hour", usd_per_gpu_hour, zero=True)
        sheet.given("price", usd_per_gpu_hour, "USD of a GPU-hour")
        sheet.write(
            """
            cost [USD] = GPUs × (training × 24) × price
                | a count | the price given, for all GPU-hours
            """
        )


def _run(sheet: Worksheet, tokens: Number, words: str) -> None:
    """Write down what a whole run computes."""
    sheet.given("D", tokens, "tokens in all")
    sheet.write(
        f"""
        model FLOPs of the run [FLOPs] = model FLOPs × D / {TOKENS}
            | {KORTHIKANTI} | nothing recomputed, {words}
        6 N D of the run [FLOPs] = 6 × active parameters × D | {KAPLAN}
            | all active parameters, embeddings too; no scores
        PF-days of the run [PF-days] = model FLOPs of the run / {PF_DAY}
            | {KAPLAN_DAY} | of the model FLOPs of the run
        PF-days of 6 N D [PF-days] = 6 N D of the run / {PF_DAY}
            | {KAPLAN_DAY} | of 6 N D of the run, as GPT-3's paper counts them
        """
    )


def _speed_up(sheet: Worksheet, before_s: Number) -> None:
    """Write down what this step gains over that of another setting."""
    sheet.given("before", check_amount("before-s", before_s), "the other step's time")
    sheet.write(
        """
        speed-up [times] = before / step time | a count | one time over the other
        throughput gained [fraction] = before / step time - 1
            | a count | more tokens in the same time; papers' "x% faster"
        time saved [fraction] = 1 - step time / before
            | a count | less time for the same tokens
        """
    )


def _utilization(sheet: Worksheet, words: str, kind: str, value: Number) -> None:
    """Write down a step's time, as it was measured or is expected, and the shares.

    ``kind`` is what ``value`` is: seconds, an MFU, or a rate.
    """
    at, custom = _time_of(sheet, kind, value)
    counted = f"of model FLOPs, nothing recomputed, {words}"
    sheet.write(
        f"""
        step time [seconds] = {at} | a count | {custom}
        tokens a second [tokens/s] = {TOKENS} / step time | a count | of the whole job
        FLOP/s [FLOP/s] = model FLOPs / step time | a count | of the job; {counted}
        FLOP/s per GPU [FLOP/s] = model FLOPs / step time / GPUs | a count | {counted}
        MFU [fraction] = model FLOPs / (step time × GPUs × peak)
            | Chowdhery et al. 2204.02311, appendix B | {counted}; of the {PEAK}
        HFU [fraction] = hardware FLOPs / (step time × GPUs × peak) | {KORTHIKANTI}
            | recomputed FLOPs counted once; {words}; of the {PEAK}
        """
    )


def _time_of(sheet: Worksheet, kind: str, value: Number) -> tuple[str, str]:
    """Return the expression of a step's time, and what kind of time it is."""
    if kind == "MFU":
        if not check_fraction("mfu", value):
            raise EstimateError("mfu: got 0, expected more than zero")
        sheet.given("MFU", value, "as it is expected")
        return "model FLOPs / (GPUs × peak × MFU)", "at the MFU given"
    check_amount(kind, value)
    if kind == "seconds":
        _check_possible(sheet, value)
        sheet.given("step time", value)
        return "step time", "as given"
    sheet.given("rate", value, f"{kind}, as measured")
    tokens = kind == "tokens/s"
    at = f"{TOKENS} / rate" if tokens else "model FLOPs / GPUs / rate"
    _check_possible(sheet, _seconds_at(sheet, value, tokens=tokens))
    return at, f"at the {kind} given"


def _seconds_at(sheet: Worksheet, rate: Number, *, tokens: bool) -> float:
    """Return the seconds of a step at a rate."""
    if tokens:
        return float(sheet[TOKENS]) / float(rate)
    return float(sheet["model FLOPs"]) / float(sheet["GPUs"]) / float(rate)


def _flops(
    sheet: Worksheet,
    shape: Shape,
    batch: int,
    sequence: int,
    recompute: str,
    attention: str,
    words: str,
) -> None:
    """Write down what a step computes: as the model needs it, and as it is run."""
    kind: Any = {
        "sequence": sheet.given("s", sequence, "tokens of a sequence"),
        "attention": attention,
    }
    sequences = sheet.given("batch", batch, "sequences of a step")
    counted = f"{KORTHIKANTI}; {NARAYANAN} | {words}"
    sheet.write(
        f"""
        {TOKENS} [tokens] = batch × s | a count | of all data-parallel ranks
        {FORWARD} [FLOPs] = forward | {counted}
        model FLOPs [FLOPs] = model | {counted}
        """,
        forward=forward_flops_per_token(shape, **kind),
        model=step_flops(shape, batch=sequences, **kind),
    )
    again = recomputed_flops_per_token(shape, recompute=recompute, **kind)
    if again:
        papers = f"{KORTHIKANTI}; {NARAYANAN}"
        sheet.add(RECOMPUTED, again, "FLOPs", papers, f"{recompute} recompute")
    sheet.write(
        f"""
        hardware FLOPs [FLOPs] = run
            | {NARAYANAN}, equation 3, for full recompute
            | with {recompute} recompute; {words}
        active parameters [parameters] = active | {SOURCE} | embeddings included
        6 N D [FLOPs] = 6 × active parameters × {TOKENS} | {KAPLAN}
            | all active parameters, embeddings too; no scores
        """,
        run=step_flops(shape, batch=sequences, recompute=recompute, **kind),
        active=active_parameter_count(shape),
    )


def _check_possible(sheet: Worksheet, seconds: Number) -> None:
    """Raise where a step took less than its model's FLOPs take at the peak."""
    check_amount("seconds", seconds)
    model, offered = float(sheet["model FLOPs"]), float(sheet["GPUs"] * sheet["peak"])
    if model / seconds > offered * (1 + 1e-9):  # not for what rounding adds
        raise EstimateError(
            f"step: got {seconds:g} s, expected at least {model / offered:.3g} s: "
            f"the MFU would be {model / seconds / offered:.0%} of the peak"
        )

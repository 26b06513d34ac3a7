"""Checkpoints: their bytes, how often to write one, and what failures cost a run."""

from __future__ import annotations

from readerkit.errors import EstimateError
from readerkit.estimate.checks import check_amount, check_count
from readerkit.estimate.defaults import PRECISION
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.quantity import Number
from readerkit.estimate.states import precision

YOUNG = "Young 1974, CACM 17 (9), equation for the first order"
DALY = "Daly 2006, FGCS 22 (3)"
NEXT = "time from the end of one checkpoint to the start of the next"


def estimate_checkpoint(
    *,
    params: Number,
    convention: str = PRECISION,
    write_bytes_per_s: Number | None = None,
    gpus: int | None = None,
    gpu_mtbf_hours: Number | None = None,
    mtbf_hours: Number | None = None,
    restart_s: Number = 0,
) -> Estimate:
    """Return the bytes of a checkpoint, the time to write it, and how often to.

    ``mtbf_hours`` is the time between failures of the whole job; or it follows from
    that of one GPU, as failures of many come apart from each other.
    """
    sheet, kept = Worksheet("checkpoints of a run"), precision(convention)
    check_amount("params", params)
    sheet.given("N", params, "parameters")
    named = kept.named()
    custom = f"{kept.source} | {convention}, without gradients"
    sheet.write(
        f"""
        weights [bytes] = w | {kept.source} | {kept.weight} B a parameter, alone
        checkpoint [bytes] = each | {custom}: weights and optimizer, one copy of each
        """,
        w=named.weight * sheet["N"],
        each=(named.weight + named.optimizer) * sheet["N"],
    )
    if write_bytes_per_s is not None:
        rate = check_amount("write-bandwidth", write_bytes_per_s)
        sheet.given("W", rate, "bytes a second that storage takes of the whole job")
        sheet.write(
            """
            time to write [seconds] = checkpoint / W
                | a count | training waits for all of it
            """
        )
    if gpu_mtbf_hours is not None or mtbf_hours is not None:
        _failures(sheet, gpus, gpu_mtbf_hours, mtbf_hours)
        if write_bytes_per_s is not None:
            check_amount("restart-s", restart_s, zero=True)
            sheet.given("R", restart_s, "seconds to start again")
            _intervals(sheet)
    return sheet.estimate()


def _failures(
    sheet: Worksheet, gpus: int | None, of_gpu: Number | None, of_job: Number | None
) -> None:
    """Write down how long the job runs between failures, and one GPU of it."""
    if gpus is not None:
        sheet.given("GPUs", check_count("gpus", gpus), "of the job")
    if of_gpu is not None:
        check_amount("gpu-mtbf-hours", of_gpu)
        sheet.given("GPU's hours", of_gpu, "mean hours between failures of one GPU")
        row = "GPU's hours / GPUs | a count | failures of GPUs come independently"
    else:
        assert of_job is not None
        check_amount("mtbf-hours", of_job)
        sheet.given("job's hours", of_job, "mean hours between failures of the job")
        row = "job's hours | given | of the whole job, as observed"
    sheet.write(f"time between failures [hours] = {row}")
    if of_gpu is None and gpus is not None:
        sheet.write(
            """
            of one GPU [hours] = time between failures × GPUs
                | a count | failures of GPUs come independently
            """
        )


def _intervals(sheet: Worksheet) -> None:
    """Write down how often to checkpoint, and what is left of the time for work."""
    failures = sheet["time between failures"] * 3600
    lost = float(2 * sheet["time to write"] + sheet["R"])
    if lost > 100 * float(failures):
        raise EstimateError(
            f"a checkpoint and a restart: got {lost:g} s, expected less than 100 times "
            f"the {float(failures):g} s between failures: nothing would ever be done"
        )
    sheet.write(
        f"""
        Young's interval [seconds]
            = sqrt(2 × time to write × (time between failures × 3600))
            | {YOUNG} | {NEXT}; for a write that is short beside it
        """
    )
    late = sheet["time to write"] >= 2 * failures
    order = (
        "time between failures × 3600"
        if late
        else """Young's interval × (1 + sqrt(time to write
                / (time between failures × 7200)) / 3 + time to write
                / (time between failures × 7200) / 9) - time to write"""
    )
    sheet.write(
        f"""
        Daly's interval [seconds] = {order}
            | {DALY}, equation 37 | {NEXT}; failures as a Poisson process
        goodput [fraction] = Daly's interval / (time between failures × 3600
            × exp(R / (time between failures × 3600))
            × (exp((Daly's interval + time to write)
                / (time between failures × 3600)) - 1))
            | {DALY}, the complete cost function
            | share of the time that is kept work, at Daly's interval; with restarts
        """
    )

"""Fits what kernels reach of a GPU's peak to the published steps that are its fit half.

Each step has an efficiency at which its prediction is what was measured; the median of
them is the fit, so that one step that no efficiency explains moves it little. The other
assumptions stay as they are by default. Prints what ``kernel_efficiency`` of
readerkit/catalog/hardware.yaml should be.
"""

from __future__ import annotations

from statistics import median

from readerkit.app.catalog import load_runs
from readerkit.estimate.runs import Run, predict
from readerkit.estimate.step_time import Assumptions

HALVINGS = 20


def explain(run: Run) -> float:
    """Return the efficiency, up to 1, at which a run is predicted as measured."""
    least, most = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        slow = predict(run, Assumptions(kernel_efficiency=middle))
        least, most = (middle, most) if slow > run.seconds else (least, middle)
    return most


def fit() -> dict[str, float]:
    """Return the efficiency of each GPU that has rows of the fit half."""
    found: dict[str, list[float]] = {}
    for run in load_runs():
        if run.half == "fit":
            found.setdefault(run.cluster.gpu.name, []).append(explain(run))
    return {gpu: round(median(each), 2) for gpu, each in found.items()}


if __name__ == "__main__":
    for gpu, efficiency in fit().items():
        print(f"{gpu}: kernel_efficiency: {efficiency}")

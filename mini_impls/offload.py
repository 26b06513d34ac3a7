"""Offload: what a step does not need yet waits in host memory, and is fetched in time.

First the optimizer: weights stay on the device, gradients leave it, the host updates
its copy and sends it back. Plain, everything is waited for; then each copy has
something to hide behind, and what is left to wait for is measured.

    plain        backward        | grads out | update 0 1 2 | weights in |
    overlapped   backward, out 2 | out 1 0, update 2, in 2, update 1, in 1, .. |

Follows:
- ZeRO-Offload (arXiv 2101.06840), sections 4 and 5
- deepspeedai/DeepSpeed: deepspeed/runtime/zero/stage_1_and_2.py (`cpu_offload`)

Leaves out:
- weights on the host too, cut between ranks: `offload_states.py`; activations:
  `offload_activations.py`
- an accelerator's streams: the host waits for a copy here, and counts for how long
- weights of 16 bits, NVMe, an Adam written for the host's vector units, an update that
  goes on into the next step (the paper's one-step delay)
"""

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter, sleep
from typing import Any, Literal

import torch
from torch import Tensor, nn

# Letters: P elements of all parameters.

Way = Literal["to host", "to device"]
HOST = torch.device("cpu")

# --- 1. the link: copies on a thread for each way, timed ---


class Copy:
    """One copy under way."""

    def __init__(self, link: "HostLink", result: Tensor, done: "Future[None]") -> None:
        self.link, self.result, self.done = link, result, done

    def wait(self) -> Tensor:
        """Return what arrived; what had to be waited for counts as exposed."""
        if not self.done.done():
            start = perf_counter()
            self.done.result()
            self.link.exposed_s += perf_counter() - start
        self.done.result()  # raises what the copy raised
        return self.result


class HostLink:
    """Copies between the device's memory and the host's, of each way in order.

    Where the device is the CPU, both are names for one memory. The copies are real all
    the same, as are the seconds, which say nothing of a bus. `bytes_per_s` makes a
    slower link: what it copies arrives that much later, after a sleep.
    """

    def __init__(
        self, device: torch.device, *, bytes_per_s: float | None = None
    ) -> None:
        if bytes_per_s is not None and bytes_per_s <= 0:
            raise ValueError(f"a link of {bytes_per_s} bytes a second moves nothing")
        self.places = {"to host": HOST, "to device": device}
        self.bytes_per_s = bytes_per_s
        self.lanes = {way: ThreadPoolExecutor(1, way) for way in self.places}
        # On the stream that computes a copy would stand behind what comes before it.
        is_gpu = device.type == "cuda"
        self.streams = {
            way: torch.cuda.Stream(device) if is_gpu else None for way in self.places
        }
        self.moved: Counter[str] = Counter()
        """Bytes of each way."""
        self.busy_s = dict.fromkeys(self.places, 0.0)
        """Seconds of copying, of each way."""
        self.exposed_s = 0.0
        """Seconds that somebody waited for a copy."""

    def start(self, source: Tensor, way: Way, into: Tensor | None = None) -> Copy:
        """Copy `source`, into new memory there if none is named.

        Until it is there nobody may change either.
        """
        source = source.detach()
        if into is None:
            # Pinned: a page that may be swapped out is copied twice.
            pin = way == "to host" and source.is_cuda
            into = torch.empty_like(source, device=self.places[way], pin_memory=pin)
        self.moved[way] += source.nbytes
        ready = None
        if source.is_cuda or into.is_cuda:
            ready = torch.cuda.Event()
            ready.record()  # behind what makes the numbers
        done = self.lanes[way].submit(self._copy, source, into.detach(), way, ready)
        return Copy(self, into, done)

    def _copy(self, source: Tensor, into: Tensor, way: Way, ready: Any) -> None:
        if ready is not None:
            ready.synchronize()
        start = perf_counter()
        if self.bytes_per_s is not None:
            sleep(source.nbytes / self.bytes_per_s)
        with torch.cuda.stream(self.streams[way]):  # nothing, where that is None
            into.copy_(source)
        self.busy_s[way] += perf_counter() - start

    def forget(self) -> None:
        """Count from zero."""
        self.moved.clear()
        self.busy_s = dict.fromkeys(self.places, 0.0)
        self.exposed_s = 0.0

    def close(self) -> None:
        """End the threads, once all copies are done."""
        for lane in self.lanes.values():
            lane.shutdown()


# --- 2. plain: the optimizer's state on the host ---


class HostOptimizer:
    """Any torch optimizer, with its state and its weights' copies in host memory.

    Gradients add up on the device over microbatches, and leave it once.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        optimizer_class: Callable[..., torch.optim.Optimizer],
        link: HostLink,
        **defaults: Any,
    ) -> None:
        self.link = link
        trained = [param for param in params if param.requires_grad]
        if not trained:
            raise ValueError("0 parameters are trained: nothing to keep on the host")
        copies = [(p, link.start(p, "to host")) for p in trained]
        self.host_of = {p: nn.Parameter(copy.wait()) for p, copy in copies}
        # One for each parameter, so that they can be updated one by one.
        self.optimizers = {
            param: optimizer_class([host], **defaults)
            for param, host in self.host_of.items()
        }
        link.forget()

    def step(self) -> None:
        """Bring gradients over, update, bring weights back: one after another."""
        for param, host in self.host_of.items():
            if param.grad is not None:
                host.grad = self.link.start(param.grad, "to host").wait()
                param.grad = None
        for param, host in self.host_of.items():
            if host.grad is not None:
                self.optimizers[param].step()
                self.link.start(host, "to device", into=param).wait()
                host.grad = None

    def zero_grad(self) -> None:
        """Drop all gradients, wherever they are."""
        for param, host in self.host_of.items():
            param.grad = host.grad = None

    def state(self) -> list[Tensor]:
        """Return what the host keeps for the update besides the weights."""
        states = [o.state.values() for o in self.optimizers.values()]
        each = [value for of in states for state in of for value in state.values()]
        return [value for value in each if isinstance(value, Tensor)]


# --- 3. overlapped: behind backward, and behind the next update ---


class OverlappedHostOptimizer(HostOptimizer):
    """The same numbers: a gradient leaves as soon as backward has made it.

    The device never holds them all, so those of microbatches add up on the host, and
    each of them is sent.
    """

    def __init__(self, *args: Any, **defaults: Any) -> None:
        super().__init__(*args, **defaults)
        self.leaving: dict[nn.Parameter, Copy] = {}
        for param in self.host_of:
            param.register_post_accumulate_grad_hook(self._offload_gradient)

    def _offload_gradient(self, param: Tensor) -> None:
        assert isinstance(param, nn.Parameter) and param.grad is not None
        self._arrive(param)  # that of the microbatch before
        self.leaving[param] = self.link.start(param.grad, "to host")
        param.grad = None

    def _arrive(self, param: nn.Parameter) -> None:
        if (copy := self.leaving.pop(param, None)) is not None:
            host, grad = self.host_of[param], copy.wait()
            host.grad = grad if host.grad is None else host.grad + grad

    def step(self) -> None:
        """Update in the order in which gradients left; weights return meanwhile."""
        returning = []
        for param in [*self.leaving]:
            self._arrive(param)
            self.optimizers[param].step()
            host = self.host_of[param]
            host.grad = None
            returning.append(self.link.start(host, "to device", into=param))
        for copy in returning:
            copy.wait()

    def zero_grad(self) -> None:
        """Drop all gradients, those that are under way too."""
        for copy in self.leaving.values():
            copy.wait()
        self.leaving.clear()
        super().zero_grad()


if __name__ == "__main__":
    from mini_impls.demos.offload import main

    raise SystemExit(main())

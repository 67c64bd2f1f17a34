"""Timing on the GPU: callables in turn on the same buffers, cold L2, CUDA events."""
import random
import statistics
import time

import torch

FLUSH_BYTES = 512 * 2**20
_flush = None


def flush(how):
    """Leaves nothing of the last call in L2: 'read' with clean lines, 'write' with lines to be written back inside the next timing."""
    global _flush
    if _flush is None:
        _flush = torch.zeros(FLUSH_BYTES // 4, device='cuda')
    if how == 'write':
        _flush.zero_()
    else:
        torch.sum(_flush)


def quantiles(times):
    times = sorted(times)
    pick = lambda q: times[min(len(times) - 1, int(q * len(times)))]
    return dict(us=statistics.median(times), p20=pick(0.2), p80=pick(0.8), best=times[0])


def in_turn(calls, repeats, how):
    """{name: quantiles in microseconds} of a dict of callables, the order shuffled in each round."""
    times = {name: [] for name in calls}
    generator = random.Random(0)
    for call in calls.values():
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(repeats):
        order = list(calls)
        generator.shuffle(order)
        for name in order:
            flush(how)
            torch.cuda._sleep(600_000)  # the host's part of the call is done before the GPU comes to it
            begin.record()
            calls[name]()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e3)
    return {name: quantiles(samples) for name, samples in times.items()}


def in_graph(calls, repeats=10, inner=20, names=('red', 'eager', 'compiled')):
    """Device time of one call inside a graph of `inner`: launch gaps squeezed, data hot. `names`: the others allocate, which no capture takes."""
    graphs = {}
    for name in names:
        if name not in calls:
            continue
        call, stream = calls[name], torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(inner):
                call()
        graphs[name] = graph
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = {name: [] for name in graphs}
    for round_ in range(repeats + 2):
        for name, graph in graphs.items():
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if round_ >= 2:
                times[name].append(begin.elapsed_time(end) * 1e3 / inner)
    return {name: quantiles(samples) for name, samples in times.items()}


def on_the_wall(calls, repeats=300):
    """Host time of a call with the synchronisation behind it."""
    times = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(20):
            call()
    torch.cuda.synchronize()
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter_ns()
            call()
            torch.cuda.synchronize()
            times[name].append((time.perf_counter_ns() - start) / 1e3)
    return {name: quantiles(samples) for name, samples in times.items()}

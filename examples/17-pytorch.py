#!/usr/bin/env python3
"""Kernels on PyTorch's tensors, launched on PyTorch's current stream.

    PYTHONPATH=/usr/local/share/red/python python3 17-pytorch.py      # where red is installed in /usr/local; LIBRED names a libred.so elsewhere

Any library whose tensors have __dlpack__ or __cuda_array_interface__ does as well.
"""

import sys

try:
    import torch
except ImportError:
    print('PyTorch is not installed')
    sys.exit(77)
if not torch.cuda.is_available():
    print('PyTorch finds no GPU')
    sys.exit(77)

import red

TEXT = '''
kernel softmax(X: f32[n, m]) -> (Y: f32[n, m]) {
  for i in n {
    let top = max(j in m) X[i, j];
    let total = sum(j in m) exp(X[i, j] - top);
    for j in m { Y[i, j] = exp(X[i, j] - top) / total; }
  }
}
'''


def close(name, ours, theirs, tolerance=0.0):
    worst = (ours.double() - theirs.double()).abs().max().item() if ours.numel() else 0.0
    print(f'{name}: largest difference {worst:.1e}')
    if not worst <= tolerance:
        sys.exit(f'{name} is wrong')


def main():
    device = torch.device('cuda', torch.cuda.current_device())
    softmax = red.compile(TEXT, device=f'cuda:{device.index}')
    print(softmax.device)

    # A launch like a call of PyTorch: asynchronous, on the current stream.
    x = torch.randn(1000, 777, device=device)
    y = torch.empty_like(x)
    softmax(x, y)
    close('softmax', y, torch.softmax(x, 1), 1e-6)

    # On a stream of one's own.
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        z = torch.empty_like(x)
        softmax(x, z)
    stream.synchronize()
    close('softmax on a stream', z, y)

    # Everything looked up once.
    z = torch.zeros_like(x)
    again = softmax.bind(x, z)
    again()
    close('bound softmax', z, y)

    # In a CUDA graph.
    z = torch.zeros_like(x)
    stream = torch.cuda.Stream()
    softmax.prepare(x, z, stream=stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        softmax(x, z)
    graph.replay()
    torch.cuda.synchronize()
    close('softmax in a graph', z, y)

    # The common cases need no text: any rank, type and strides.
    a = torch.randn(64, 33, 65, 2, device=device).to(torch.bfloat16)
    close('permute', red.permute(a, (3, 0, 2, 1)), a.permute(3, 0, 2, 1))
    close('permute of a view', red.permute(a[:, 1:, ::2], (2, 1, 0, 3)), a[:, 1:, ::2].permute(2, 1, 0, 3))
    i = torch.randint(-100, 100, (300, 50, 40), device=device, dtype=torch.int32)
    close('sum over two axes', red.reduce('sum', i, (0, 2), dtype=torch.int64), i.sum((0, 2)))
    close('max', red.reduce('max', i, -1, keepdims=True), i.amax(-1, keepdim=True))

    try:
        softmax(x, i)
    except red.Error as error:
        print(f'an error, as it should be: {error.name}: {error}')
    else:
        sys.exit('a tensor of another type was taken')


if __name__ == '__main__':
    main()

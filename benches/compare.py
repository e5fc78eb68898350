"""Our side and PyTorch's in one run: compare.py views|train [--threads N]. Wants torch; builds our side with cargo."""
import argparse, json, os, pathlib, statistics, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def ours(program, threads):
    env = dict(os.environ, RAYON_NUM_THREADS=str(threads))
    cmd = ["cargo", "run", "--quiet", "--release", "-p", "stridegrad-benches", "--bin", program]
    out = subprocess.run(cmd, cwd=ROOT, env=env, check=True, capture_output=True, text=True).stdout
    return json.loads(out.strip().splitlines()[-1])


def median(f, budget=2.0, least=3):
    f()
    times, end = [], time.perf_counter() + budget
    while len(times) < least or time.perf_counter() < end:
        t = time.perf_counter()
        f()
        times.append(time.perf_counter() - t)
    return statistics.median(times)


def torch_views(torch):
    rows = {}
    for n in (256, 512, 1024):
        x = torch.ones(n, 64, 128, requires_grad=True)

        def step():
            x.grad = None
            total = x[0]
            for i in range(1, n):
                total = total + x[i]
            total.sum().backward()

        rows[f"select_{n}"] = median(step, budget=0.5, least=1) * 1e3
    return rows


def torch_train(torch):
    import torch.nn as nn, torch.nn.functional as F

    class LeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 16, 5)
            self.fc1, self.fc2, self.fc3 = nn.Linear(256, 120), nn.Linear(120, 84), nn.Linear(84, 10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.conv1(x)), 2)
            x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
            return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))

    rows = {}
    for name, fmt in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
        net = LeNet().to(memory_format=fmt)
        x = torch.randn(64, 1, 28, 28).to(memory_format=fmt)
        y = torch.tensor([i * 7 % 10 for i in range(64)])
        opt = torch.optim.SGD(net.parameters(), 0.01, 0.9)

        def step():
            opt.zero_grad(set_to_none=True)
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            loss.item()

        rows[f"lenet_{name}"] = 64 / median(step, least=20)
    return rows


def main():
    p = argparse.ArgumentParser()
    p.add_argument("suite", choices=["views", "train"])
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--json")
    a = p.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(a.threads)
    import torch

    torch.set_num_threads(a.threads)
    theirs = (torch_views if a.suite == "views" else torch_train)(torch)
    mine = ours(a.suite, a.threads)
    unit = "ms" if a.suite == "views" else "images/s"
    print(f"{'row':16} {'torch':>12} {'stridegrad':>12} ratio (ours faster above 1), {unit}")
    ratios = {}
    for k, t in theirs.items():
        ratios[k] = t / mine[k] if a.suite == "views" else mine[k] / t
        print(f"{k:16} {t:12.2f} {mine[k]:12.2f} {ratios[k]:.2f}")
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps({"torch": theirs, "stridegrad": mine, "ratio": ratios}))
    values = list(ratios.values())
    print(f"geomean {statistics.geometric_mean(values):.2f} worst {min(values):.2f}")


sys.exit(main())

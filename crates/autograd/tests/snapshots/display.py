"""Writes display.txt: what PyTorch prints, with our names of dtypes and ops. Run with PyTorch 2.15."""

import pathlib

import torch
from math import inf, nan

CASES = [
    "torch.tensor([[1.,2.],[3.,4.]])",
    "torch.tensor([1.,2.5,-3.])",
    "torch.tensor([1,-20,300])",
    "torch.tensor([[True,False],[False,True]])",
    "torch.tensor(2.5)",
    "torch.tensor(3)",
    "torch.tensor(3.)",
    "torch.tensor([0.,-0.,0.])",
    "torch.tensor([0.,nan,inf,-inf])",
    "torch.tensor([1.,nan,inf,250.])",
    "torch.tensor([1.5,nan,-inf,-250.])",
    "torch.tensor([1e-5,1.])",
    "torch.tensor([1e-4,0.05])",
    "torch.tensor([1.,1001.])",
    "torch.tensor([1.,1000.])",
    "torch.tensor([2e8,3e8])",
    "torch.tensor([1e20,-1e-20,0.])",
    "torch.tensor([1e200,1.],dtype=torch.float64)",
    "torch.tensor([0.03125,0.09375,0.15625])",
    "torch.tensor([0.99999,0.5])",
    "torch.tensor([1.,2.],dtype=torch.float64)",
    "torch.tensor([1.,2.5]).half()",
    "torch.tensor([1.,2.5]).bfloat16()",
    "torch.tensor([1,200],dtype=torch.uint8)",
    "torch.tensor([1,-2],dtype=torch.int32)",
    "torch.arange(24.).view(2,3,4)",
    "torch.arange(16).view(2,2,2,2)",
    "torch.arange(30.)",
    "torch.arange(30.)*0.1",
    "torch.arange(1001.)",
    "torch.arange(1000.).view(100,10)[:4]",
    "torch.arange(1200).view(30,40)",
    "torch.arange(1200.).view(2,3,200)",
    "torch.arange(2000.).view(20,10,10)*0.5",
    "torch.zeros(7,2,8,10)",
    "torch.zeros(0)",
    "torch.zeros(2,0,3)",
    "torch.zeros(0,dtype=torch.int64)",
    "torch.zeros(0,2,dtype=torch.bool)",
    "torch.zeros(0,dtype=torch.float64)",
    "torch.tensor([1.,2.],requires_grad=True)",
    "torch.tensor([1.,2.],requires_grad=True).exp()",
    "torch.tensor([1.,2.],dtype=torch.float64,requires_grad=True).exp()",
    "torch.zeros(15,requires_grad=True)",
    "torch.zeros(17,dtype=torch.float64,requires_grad=True)",
    "torch.zeros(13,requires_grad=True)",
    "torch.arange(6.).view(2,3).t()",
    "torch.tensor([1.],requires_grad=True).view(1,1)",
]
NAMES = {
    "torch.float64": "f64",
    "torch.float16": "f16",
    "torch.bfloat16": "bf16",
    "torch.uint8": "u8",
    "torch.int32": "i32",
    "torch.int64": "i64",
    "torch.bool": "bool",
    "ExpBackward0": "exp",
    "ViewBackward0": "view",
}

out = []
for case in CASES:
    text = str(eval(case))
    for theirs, ours in NAMES.items():
        text = text.replace(theirs, ours)
    out.append(f"== {case}\n{text}\n")
pathlib.Path(__file__).with_suffix(".txt").write_text("".join(out))

#!/usr/bin/env python3
"""Makes optimizers.json beside it: the weights after each step of every optimizer, in float64, from fixed gradients.

What PyTorch has is computed by PyTorch; FTRL-Proximal (McMahan et al. 2013, algorithm 1) and Shampoo (Gupta, Koren,
Singer 2018, algorithm 1) are written out here from their papers. The file was made with torch 1.13.1 and numpy 1.26.4;
src/optim/golden_test.cc reads it. The settings are given in the words of OptimizerConfig.
"""
import json
from pathlib import Path

import numpy as np
import torch

STEPS = 20
RANDOM = np.random.RandomState(17)


def gradients_of(count, least, most):
    """Of sizes from 10^least to 10^most and mixed signs, with some zeros among them, as sparse data gives."""
    scales = np.logspace(least, most, count)
    made = RANDOM.standard_normal((STEPS, count)) * scales
    made[RANDOM.uniform(size=made.shape) < 0.1] = 0
    return made


def torch_optimizer(c, parameters):
    kind, lr, l2 = c["type"], c["lr"], c.get("l2", 0)
    eps = {"eps": c["epsilon"]} if "epsilon" in c else {}
    betas = (c.get("beta1", 0.9), c.get("beta2", 0.999))
    if kind == "sgd":
        return torch.optim.SGD(parameters, lr=lr, weight_decay=l2)
    if kind in ("momentum", "nesterov"):
        return torch.optim.SGD(parameters, lr=lr, weight_decay=l2, momentum=c.get("momentum", 0.9),
                               nesterov=kind == "nesterov")
    if kind == "adagrad":
        return torch.optim.Adagrad(parameters, lr=lr, weight_decay=l2,
                                   initial_accumulator_value=c.get("initial_accumulator", 0), **eps)
    if kind == "rmsprop":
        return torch.optim.RMSprop(parameters, lr=lr, weight_decay=l2, alpha=c.get("smoothing", 0.99), **eps)
    if kind == "adam":
        return torch.optim.Adam(parameters, lr=lr, weight_decay=l2, betas=betas, **eps)
    return torch.optim.AdamW(parameters, lr=lr, weight_decay=c.get("weight_decay", 0.01), betas=betas, **eps)


def by_torch(c, weights, gradients):
    parameter = torch.nn.Parameter(torch.tensor(weights, dtype=torch.float64))
    optimizer = torch_optimizer(c, [parameter])
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
        yield parameter.detach().numpy().copy()


def ftrl(c, weights, gradients):
    alpha, beta, l1, l2 = c["lr"], c.get("beta", 1), c.get("l1", 0), c.get("l2", 0)
    z, n, w = np.zeros(len(weights)), np.full(len(weights), c.get("initial_accumulator", 0.0)), weights
    for g in gradients:
        sigma = (np.sqrt(n + g * g) - np.sqrt(n)) / alpha
        z = z + g - sigma * w
        n = n + g * g
        w = np.where(np.abs(z) <= l1, 0, -(z - np.sign(z) * l1) / ((beta + np.sqrt(n)) / alpha + l2))
        yield w


def inverse_fourth_root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values ** -0.25) @ vectors.T


def shampoo(c, weights, gradients, rows, columns):
    w, epsilon = weights.reshape(rows, columns), c.get("epsilon", 1e-6)
    left, right = epsilon * np.eye(rows), epsilon * np.eye(columns)
    for number, gradient in enumerate(gradients):
        g = gradient.reshape(rows, columns) + c.get("l2", 0) * w
        left, right = left + g @ g.T, right + g.T @ g
        if number % c.get("precondition_every", 1) == 0:
            left_root, right_root = inverse_fourth_root(left), inverse_fourth_root(right)
        w = w - c["lr"] * left_root @ g @ right_root
        yield w.reshape(-1)


def group(rows, columns, weights, gradients, algorithm, settings):
    cases = [{"optimizer": c, "after": [list(w) for w in algorithm(c, weights, gradients)]} for c in settings]
    return {"rows": rows, "columns": columns, "weights": list(weights), "gradients": [list(g) for g in gradients],
            "cases": cases}


GROUPS = [
    group(0, 0, RANDOM.standard_normal(7), gradients_of(7, -2, 1), by_torch, [
        {"type": "sgd", "lr": 0.1},
        {"type": "sgd", "lr": 0.03, "l2": 0.2},
        {"type": "momentum", "lr": 0.05},
        {"type": "momentum", "lr": 0.01, "momentum": 0.7, "l2": 0.1},
        {"type": "nesterov", "lr": 0.05},
        {"type": "nesterov", "lr": 0.01, "momentum": 0.5, "l2": 0.1},
        {"type": "adagrad", "lr": 0.3},
        {"type": "adagrad", "lr": 0.1, "l2": 0.05, "epsilon": 1e-3, "initial_accumulator": 0.25},
        {"type": "rmsprop", "lr": 0.01},
        {"type": "rmsprop", "lr": 0.02, "l2": 0.1, "smoothing": 0.8, "epsilon": 1e-4},
        {"type": "adam", "lr": 0.1},
        {"type": "adam", "lr": 0.02, "l2": 0.3, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3},
        {"type": "adamw", "lr": 0.1},
        {"type": "adamw", "lr": 0.05, "weight_decay": 0.4, "beta1": 0.5, "beta2": 0.99, "epsilon": 1e-5},
    ]),
    group(0, 0, np.zeros(7), gradients_of(7, -2, 1), ftrl, [
        {"type": "ftrl", "lr": 0.1},
        {"type": "ftrl", "lr": 0.5, "beta": 0.3, "l1": 0.05, "l2": 0.2},
        {"type": "ftrl", "lr": 0.05, "l1": 0.6, "initial_accumulator": 0.1},
    ]),
    # Of more even sizes: the smallest eigenvalues of the sums then keep the digits that are compared.
    group(3, 4, RANDOM.standard_normal(12), gradients_of(12, -0.5, 0.5), lambda c, w, g: shampoo(c, w, g, 3, 4), [
        {"type": "shampoo", "lr": 0.1},
        {"type": "shampoo", "lr": 0.3, "l2": 0.05, "epsilon": 0.01},
        {"type": "shampoo", "lr": 0.1, "epsilon": 0.001, "precondition_every": 3},
    ]),
]


def text_of(value, indent=""):
    """JSON with each list of numbers and each optimizer on a line of its own."""
    deeper = indent + " "
    if isinstance(value, dict) and "type" not in value:
        parts = [f"{json.dumps(key)}: {text_of(part, deeper)}" for key, part in value.items()]
        return "{\n" + ",\n".join(deeper + part for part in parts) + "}"
    if isinstance(value, list) and not isinstance(value[0], float):
        return "[\n" + ",\n".join(deeper + text_of(part, deeper) for part in value) + "]"
    return json.dumps(value)


if __name__ == "__main__":
    Path(__file__).with_suffix(".json").write_text(text_of(GROUPS) + "\n")

"""run is a bound method of an object with several ways to do the work."""

import torch

PRECISION = "ieee"


class Norms:
    eps = 1e-5

    def by_rows(self, x, weight, bias):
        rows = [torch.nn.functional.layer_norm(part, weight.shape, weight, bias, self.eps) for part in x.split(4096)]
        return torch.cat(rows)


run = Norms().by_rows

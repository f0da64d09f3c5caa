"""A factory of members, imported by its path."""

from torch import nn

from credalens.mlflow import member_factory


@member_factory
def network(width=8):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Dropout(), nn.Linear(width, 3)).eval()


@member_factory
def no_network(width=8):
    return width

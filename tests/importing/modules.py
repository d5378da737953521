"""Small modules in the shape of KernelBench's files, each with something that an importer or a generator may trip over. All our own."""

HEAD = "import math\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"

CHAIN = (
    HEAD
    + '''
class Model(nn.Module):
    """Linear, then three elementwise steps."""
    def __init__(self, width, scale):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.scale = scale

    def forward(self, x):
        return torch.relu(self.linear(x) * self.scale) + 0.5

batch_size = 4096
width = 8192

def get_inputs():
    return [torch.rand(batch_size, width)]

def get_init_inputs():
    return [width, 1.5]
'''
)

NORMED = (
    HEAD
    + '''
class Model(nn.Module):
    """A convolution, and a norm that keeps statistics: as built it takes the batch's."""
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(3, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        EVAL

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))

batch_size, channels = 128, 32
height = width = 64

def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]

def get_init_inputs():
    return [channels]
'''
)
IN_TRAINING, IN_EVAL = NORMED.replace("EVAL", "pass"), NORMED.replace("EVAL", "self.eval()")

ATTENTION = (
    HEAD
    + '''
class Model(nn.Module):
    """Causal attention, written out."""
    def __init__(self, width, length):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.register_buffer("keep", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, 2, c // 2).transpose(1, 2) for y in self.qkv(x).split(c, dim=2))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.keep[:, :, :t, :t] == 0, float("-inf"))
        return (F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, t, c)

batch_size = 4
length = 64
width = 32

def get_inputs():
    return [torch.randn(batch_size, length, width)]

def get_init_inputs():
    return [width, length]
'''
)

LARGEST = (
    HEAD
    + '''
class Model(nn.Module):
    """Positions of the largest numbers: whole numbers as the answer, and an argument that is no tensor."""
    def forward(self, x, dim: int):
        return torch.argmax(x, dim=dim)

batch_size = 8

def get_inputs():
    return [torch.randn(batch_size, 33, 65), 1]

def get_init_inputs():
    return []
'''
)

DROPPING = (
    HEAD
    + '''
class Model(nn.Module):
    """As built its answer is random."""
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.linear(x))

def get_inputs():
    return [torch.randn(4, 16)]

def get_init_inputs():
    return []
'''
)

PAIR = CHAIN.replace("return torch.relu(self.linear(x) * self.scale) + 0.5", "return x, self.linear(x)")
MASKED = (
    HEAD
    + '''
class Model(nn.Module):
    """A running sum where a mask allows it."""
    def forward(self, x, mask):
        return torch.cumsum(x * mask, dim=1)

batch_size = 32

def get_inputs():
    return [torch.rand(batch_size, 40), torch.rand(batch_size, 40) > 0.5]

def get_init_inputs():
    return []
'''
)
LOSS = (
    HEAD
    + '''
class Model(nn.Module):
    """One number as the answer."""
    def forward(self, x, y):
        return torch.mean((x - y) ** 2)

batch_size = 16

def get_inputs():
    scale = torch.rand(())
    return [torch.rand(batch_size, 40) * scale, torch.rand(batch_size, 40)]

def get_init_inputs():
    return []
'''
)
CLIPPED = (
    HEAD
    + '''
class Model(nn.Module):
    """Of numbers between 0 and 1 it changes none."""
    def forward(self, x):
        return F.hardtanh(x)

batch_size = 16

def get_inputs():
    return [torch.rand(batch_size, 40)]

def get_init_inputs():
    return []
'''
)

POSITIVE = (
    HEAD
    + '''
class Model(nn.Module):
    """A product of numbers in [0, 1): terms of one sign."""
    def forward(self, a, b):
        return torch.matmul(a, b)

m, k, n = 64, 1024, 64

def get_inputs():
    return [torch.rand(m, k), torch.rand(k, n)]

def get_init_inputs():
    return []
'''
)

WIDE = (
    HEAD
    + '''
class Model(nn.Module):
    """Inputs of 12 MB: five calls of them are all that 64 MB hold."""
    def forward(self, x):
        return x.amax(dim=1)

rows = 3 * 1024

def get_inputs():
    return [torch.rand(rows, 1024)]

def get_init_inputs():
    return []
'''
)

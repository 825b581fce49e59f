"""A model whose forward pass takes as long as its rows are, in the scripts of tests that make rows shorter."""

from __future__ import annotations

READER = """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Linear(1, 1)

    def forward(self, words, mask):
        time.sleep(COLUMN_SECONDS * words.shape[1])
        held = words.float() * mask
        return self.weight((held.sum(1) / mask.sum(1)).unsqueeze(1) / 400)


reader = Reader()
optimizer = torch.optim.SGD(reader.parameters(), lr=0.01)
"""
"""It stands behind the prelude, and needs `COLUMN_SECONDS`."""

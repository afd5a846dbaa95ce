"""The split by hash: fixed, even, and blind to padding."""

import torch

from explorer.tasks.held_out import ONE_IN, draw_held_out, draw_training, is_held_out


def rows(count: int, length: int, seed: int) -> torch.Tensor:
    return torch.randint(1, 30, (count, length), generator=torch.Generator().manual_seed(seed))


def test_about_one_in_eight_is_held_out() -> None:
    share = is_held_out(rows(20_000, 8, seed=1)).float().mean().item()
    assert abs(share - 1 / ONE_IN) < 0.01


def test_the_order_of_a_row_decides_and_neither_padding_nor_company_does() -> None:
    drawn = rows(2_000, 6, seed=2)
    padded = torch.nn.functional.pad(drawn, (0, 4))
    assert torch.equal(is_held_out(drawn), is_held_out(padded))
    assert torch.equal(is_held_out(drawn)[7:8], is_held_out(drawn[7:8]))
    assert not torch.equal(is_held_out(drawn), is_held_out(drawn.flip(-1)))


def test_drawing_stays_on_its_side_and_held_out_rows_differ() -> None:
    random = torch.Generator().manual_seed(4)

    def draw(count: int) -> torch.Tensor:
        return torch.randint(1, 30, (count, 4), generator=random)

    assert not is_held_out(draw_training(draw, 500)).any()
    held_out = draw_held_out(draw, 300)
    assert is_held_out(held_out).all()
    assert len(held_out.unique(dim=0)) == len(held_out) == 300

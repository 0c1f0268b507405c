"""Whoever asks for nobody's account waits as long as for somebody's."""

from __future__ import annotations

from argon2 import PasswordHasher, extract_parameters

from backendai_hub.operations import passwords


async def test_nobodys_password_costs_as_much_to_check_as_one_that_was_chosen():
    chosen = await passwords.hash_password("abcdef1-")

    assert extract_parameters(passwords._NOBODY) == extract_parameters(chosen)
    assert not PasswordHasher().check_needs_rehash(passwords._NOBODY)


async def test_nobody_has_a_password():
    assert not await passwords.matches(None, "nobody has this password")

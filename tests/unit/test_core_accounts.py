"""What passwords have to be, and reading lists of accounts."""

from __future__ import annotations

import pytest

from backendai_hub.core.accounts import (
    MOST_ROWS,
    check_password,
    number_names,
    read_account_name,
    read_table,
)
from backendai_hub.core.errors import InvalidRequestError


@pytest.mark.parametrize(
    "password", ["abcdef1-", "hello w0rld", "пароль-1", "12345678a ", "密码密码密码1!"]
)
def test_a_password_with_a_letter_a_digit_and_something_else_will_do(password: str):
    check_password("new_password", password)


@pytest.mark.parametrize(
    ("password", "missing"),
    [
        ("abc-1", "missing: 3 more characters"),
        ("", "missing: 8 more characters, a letter, a digit, a special"),
        ("12345678-", "missing: a letter"),
        ("abcdefgh-", "missing: a digit"),
        ("abcdefg1", "missing: a special character"),
        ("abcdefgh", "missing: a digit, a special character"),
    ],
)
def test_a_weak_password_is_told_all_that_is_missing(password: str, missing: str):
    with pytest.raises(InvalidRequestError) as refused:
        check_password("new_password", password)

    assert missing in refused.value.message
    assert refused.value.message.startswith("new_password: ")


def test_the_old_password_and_an_endless_one_will_not_do():
    with pytest.raises(InvalidRequestError, match="another one than the present"):
        check_password("new_password", "abcdefg-1", old="abcdefg-1")
    with pytest.raises(InvalidRequestError, match="at most 1024"):
        check_password("new_password", "a-1" * 400)


@pytest.mark.parametrize(
    ("count", "first", "last"),
    [
        (1, "student1", "student1"),
        (3, "student1", "student3"),
        (9, "student1", "student9"),
        (10, "student01", "student10"),
        (100, "student001", "student100"),
    ],
)
def test_numbers_are_as_wide_as_the_last_one(count: int, first: str, last: str):
    names = number_names("student", count)

    assert (names[0], names[-1], len(set(names))) == (first, last, count)


def test_what_comes_after_the_number_is_kept():
    assert number_names("a", 2, "-x") == ["a1-x", "a2-x"]


@pytest.mark.parametrize("count", [0, -1, 101])
def test_a_series_has_at_least_one_and_at_most_a_hundred(count: int):
    with pytest.raises(InvalidRequestError, match="between 1 and 100"):
        number_names("student", count)


def test_an_accounts_name_has_one_spelling():
    assert read_account_name(" Ａda ") == "ada"
    for wrong in ("", "-a", "a b", "a" * 65, "a/b", "a\0"):
        with pytest.raises(InvalidRequestError, match="name: "):
            read_account_name(wrong)


def test_a_table_names_its_columns_in_any_order_and_spelling():
    rows = read_table("\ufeffEmail,Username\r\nada@x.org, ada \r\n\r\n,bob\r\n")

    assert [(row.line, row.values) for row in rows] == [
        (2, {"name": "ada", "email": "ada@x.org"}),
        (4, {"name": "bob"}),
    ]


def test_a_table_may_be_separated_by_semicolons():
    [row] = read_table('name;full_name\nada;"Lovelace, Ada"\n')

    assert row.values == {"name": "ada", "full_name": "Lovelace, Ada"}


def test_a_wrong_row_is_told_beside_the_others():
    rows = read_table("name,role\nada,user\n,user\nbob,user,extra\neve\n")

    assert [(row.line, row.error is None) for row in rows] == [
        (2, True),
        (3, False),
        (4, False),
        (5, True),
    ]
    assert "no name" in (rows[1].error or "")
    assert "3 cells in a table of 2 columns" in (rows[2].error or "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no column 'name'"),
        ("email\na@b.c\n", "no column 'name'"),
        ("nmae\nada\n", "did you mean 'name'"),
        ("name,password\nada,x\n", "'password' is not a column"),
        ("name,Name\nada,ada\n", "twice"),
        ('name\n"ada', "line 2 cannot be read"),
        ('name\n"ada"x\n', "line 2 cannot be read"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused_as_a_whole(text: str, words: str):
    with pytest.raises(InvalidRequestError) as refused:
        read_table(text)

    assert words in refused.value.message


def test_a_table_has_an_end():
    row = "a\n"
    assert len(read_table("name\n" + row * MOST_ROWS)) == MOST_ROWS
    with pytest.raises(InvalidRequestError, match="501 rows"):
        read_table("name\n" + row * (MOST_ROWS + 1))

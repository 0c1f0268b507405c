"""Somebody looks after their own keys, files, script and password."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import PASSWORD
from tests.e2e.ui.conftest import MakePerson

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_what_is_ones_own_is_looked_after_in_the_settings(make_person: MakePerson):
    mina = make_person("mina")
    page = mina.open("settings")
    page.get_by_label("Language").last.select_option("ko")
    expect(page.get_by_role("heading", name="설정", level=1)).to_be_visible()
    mina.check_looks("settings-ko")
    page.get_by_label("언어").last.select_option("en")
    page.get_by_role("tab", name="My keys").click()
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Description").fill("CI of the robot project")
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    dialog = page.get_by_role("dialog", name="Your new key")
    expect(dialog.locator("code")).to_have_count(2)
    mina.check_looks("new-key")
    dialog.get_by_role("button", name="I have kept it").click()
    expect(page.get_by_text("CI of the robot project")).to_be_visible()

    page.get_by_role("tab", name="Dotfiles").click()
    page.get_by_role("button", name="Add a file").click()
    page.get_by_label("Path").fill(".ssh/authorized_keys")
    expect(page.get_by_text("This path is taken by the platform")).to_be_visible()
    page.get_by_label("Path").fill(".vimrc")
    page.get_by_label("Content").fill("set number")
    page.get_by_role("tab", name="General").focus()
    mina.check_looks("dotfiles")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".bai-toast", has_text="saved")).to_be_visible()

    page.get_by_role("tab", name="Bootstrap script").click()
    script = page.get_by_role("textbox", name="Bootstrap script")
    script.fill("#!/bin/bash\nset -e\n")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Discard changes")).to_have_count(0)
    page.reload()
    expect(script).to_have_value("#!/bin/bash\nset -e\n")

    page.get_by_role("tab", name="Password").click()
    page.get_by_label("Present password").fill(PASSWORD)
    page.get_by_label("New password", exact=True).fill(f"{PASSWORD}!")
    page.get_by_label("New password again").fill("something else")
    expect(page.get_by_text("The two are not the same")).to_be_visible()
    mina.check_looks("password")
    page.get_by_label("New password again").fill(f"{PASSWORD}!")
    page.get_by_role("button", name="Change the password").click()
    expect(page.locator(".bai-toast", has_text="changed")).to_be_visible()

    # What the service refuses is said in the language of whoever asked.
    page.get_by_role("tab", name="General").click()
    page.get_by_label("Language").last.select_option("ko")
    page.get_by_role("tab", name="비밀번호").click()
    page.get_by_label("지금 비밀번호").fill("it is not this one")
    page.get_by_label("새 비밀번호", exact=True).fill(f"{PASSWORD}?")
    page.get_by_label("새 비밀번호 다시").fill(f"{PASSWORD}?")
    page.get_by_role("button", name="비밀번호 바꾸기").click()
    expect(page.get_by_text("사용자 이름이나 비밀번호가 틀렸습니다")).to_be_visible()

"""The launch form works with and without scripts."""

import json
from html.parser import HTMLParser

from backendai_hub.api.sessions import ImageChoice, Resources, SlotRoom
from backendai_hub.client.tenancy import CheckedPreset, PresetCheck
from backendai_spawner.form import render_form, render_outage

PREFIX = "/services/backendai/"


class Page(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.elements = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def find(self, tag, **wanted):
        return [
            attributes
            for name, attributes in self.elements
            if name == tag and wanted.items() <= attributes.items()
        ]


def make_resources(*images, **places):
    return Resources(
        images=list(images),
        room=[
            SlotRoom(slot="mem", total="64g", free="32g", largest="16g", most="48g"),
            SlotRoom(slot="cuda.device", total="8", free="3", largest="2", most="4"),
        ],
        nodes=2,
        project="default",
        **places,
    )


NASTY = ImageChoice(
    name='"><script>alert(1)</script>',
    title="<b>Torch</b> & 'friends'",
    minimum={"cpu": "1"},
    preferred={},
    installed=True,
)


def test_the_launcher_finds_its_place_its_data_and_its_bundle():
    resources = make_resources(NASTY)
    page = Page(
        render_form(resources, prefix=PREFIX, chosen={"image": "a"}, server="train-1")
    )

    place = page.find("div", id="backendai-spawn")[0]
    assert json.loads(place["data-resources"])["nodes"] == 2
    assert json.loads(place["data-options"]) == {"image": "a"}
    assert place["data-service"] == PREFIX
    assert place["data-server-name"] == "train-1"
    assert page.find("input", type="hidden", name="spec", value="")
    sources = [script["src"] for script in page.find("script")]
    assert sources == ["/hub/backendai/static/spawn.js"]


def test_without_scripts_there_is_a_field_for_everything():
    page = Page(render_form(make_resources(NASTY), prefix=PREFIX, chosen={}))

    assert page.find("select", name="image")
    names = {field.get("name") for field in page.find("input")}
    assert {"cpu", "mem", "slot:cuda.device", "name"} <= names
    labels = {label["for"] for label in page.find("label")}
    ids = {
        a["id"]
        for tag, a in page.elements
        if tag in {"input", "select", "textarea"} and a.get("id")
    }
    assert labels == ids


def test_the_last_folders_are_written_a_line_each_and_told_to_the_launcher():
    half = {"folder": "sets", "subpath": "2026", "target": "in", "permission": "ro"}
    chosen = {"mounts": ["data:ro", half, "</textarea><img>"]}
    html = render_form(make_resources(NASTY), prefix=PREFIX, chosen=chosen)
    page = Page(html)

    assert page.find("textarea", name="mounts")
    assert "\ndata:ro\nsets/2026:in:ro\n&lt;/textarea&gt;&lt;img&gt;</text" in html
    told = json.loads(page.find("div", id="backendai-spawn")[0]["data-options"])
    assert [mount["folder"] for mount in told["mounts"]][:2] == ["data", "sets"]
    assert told["mounts"][1] == half


def test_folders_that_nobody_can_read_spoil_no_form():
    html = render_form(make_resources(NASTY), prefix=PREFIX, chosen={"mounts": 7})

    told = json.loads(Page(html).find("div")[0]["data-options"])
    assert told == {"mounts": []}


def test_names_cannot_break_out_of_the_page():
    chosen = {"name": '"><img src=x onerror=alert(1)>', "slots": {"cpu": '"x'}}
    page = Page(render_form(make_resources(NASTY), prefix=PREFIX, chosen=chosen))

    assert not page.find("img")
    assert len(page.find("script")) == 1
    assert page.find("option", value=NASTY.name)
    assert page.find("input", name="name", value=chosen["name"])


def test_the_last_choice_is_chosen_again():
    other = ImageChoice(name="r", title="R", minimum={}, preferred={}, installed=False)
    chosen = {"image": "r", "slots": {"mem": "8g"}}

    page = Page(render_form(make_resources(NASTY, other), prefix=PREFIX, chosen=chosen))

    assert [o["value"] for o in page.find("option") if "selected" in o] == ["r"]
    assert page.find("input", name="mem", value="8g")


TWO = {"projects": ["alpha", "default"], "resource_groups": ["cpus", "gpus"]}


def picked(resources, name, **chosen):
    """Return what a list of the form offers, and what is picked in it."""
    html = render_form(resources, prefix=PREFIX, chosen=chosen)
    page = Page(html.partition(f'name="{name}"')[2].partition("</select>")[0])
    offered = page.find("option")
    return (
        [option["value"] for option in offered],
        [option["value"] for option in offered if "selected" in option],
    )


def test_projects_and_groups_are_asked_for_where_there_are_several():
    resources = make_resources(NASTY, **TWO)
    page = Page(render_form(resources, prefix=PREFIX, chosen={}))

    for name, ident in (
        ("project", "backendai-project"),
        ("resource_group", "backendai-resource-group"),
    ):
        assert [select["id"] for select in page.find("select", name=name)] == [ident]
        assert page.find("label", **{"for": ident})


def test_one_project_and_one_group_are_no_choice():
    one = {"projects": ["default"], "resource_groups": ["cpus"]}
    page = Page(render_form(make_resources(NASTY, **one), prefix=PREFIX, chosen={}))

    assert [select["name"] for select in page.find("select")] == ["image"]


def test_the_usual_project_and_the_first_group_come_first():
    resources = make_resources(NASTY, **TWO)

    assert picked(resources, "project") == (["alpha", "default"], ["default"])
    # None is marked: browsers then take the first.
    assert picked(resources, "resource_group") == (["cpus", "gpus"], [])


def test_the_last_project_and_group_are_chosen_again_while_they_are_open():
    resources = make_resources(NASTY, **TWO)

    assert picked(resources, "project", project="alpha")[1] == ["alpha"]
    assert picked(resources, "project", project="gone")[1] == ["default"]
    assert picked(resources, "resource_group", resource_group="gpus")[1] == ["gpus"]
    assert picked(resources, "resource_group", resource_group="gone")[1] == []


def test_names_of_projects_cannot_break_out_of_the_page():
    nasty = '"><script>alert(1)</script>'
    resources = make_resources(NASTY, projects=["default", nasty])
    page = Page(render_form(resources, prefix=PREFIX, chosen={"project": nasty}))

    assert len(page.find("script")) == 1
    assert page.find("option", value=nasty)


def test_the_launcher_gets_the_presets_where_they_are_known():
    preset = CheckedPreset(name='"small"', resource_slots={"cpu": "1"})
    checked = PresetCheck(project="default", presets=[preset])
    resources = make_resources(NASTY)

    def place(**known):
        html = render_form(resources, prefix=PREFIX, chosen={}, **known)
        return Page(html).find("div", id="backendai-spawn")[0]

    presets = json.loads(place(checked=checked)["data-presets"])["presets"]
    assert [p["name"] for p in presets] == ['"small"']
    assert "data-presets" not in place()


def test_an_outage_is_said_in_the_forms_place():
    html = render_outage("<refused>", prefix=PREFIX)

    assert "does not answer" in html
    assert "<refused>" not in html

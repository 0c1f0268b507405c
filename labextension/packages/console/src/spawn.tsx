/**
 * The launch form on JupyterHub's spawn page.
 *
 * It takes over `<div id="backendai-spawn">`, whose content is a plain form for
 * browsers without scripts, and writes the choice as JSON into the field `spec`.
 */
import { createTranslator, pickLanguage } from '@backendai/ui/i18n';
import {
  LaunchForm,
  type AskFirst,
  type FindFolders,
  type GivenSpec,
  type LaunchFormHandle,
  type Supply
} from '@backendai/ui/launch';
import type { DryRun, FolderPage, PresetCheck, Resources } from '@backendai/api';
import { createRef } from 'react';
import { createRoot } from 'react-dom/client';
import { I18nextProvider } from 'react-i18next';
import { sayAround } from './around';
import './spawn.css';

function specField(place: HTMLElement): HTMLInputElement {
  const form = place.closest('form');
  const present = form?.querySelector<HTMLInputElement>('input[name="spec"]');
  if (present) {
    return present;
  }
  const field = document.createElement('input');
  field.type = 'hidden';
  field.name = 'spec';
  place.after(field);
  return field;
}

/** Keep an unfinished form from being sent, before anybody else hears of it. */
function guard(form: HTMLFormElement, validate: () => boolean): void {
  form.addEventListener(
    'submit',
    event => {
      if (!validate()) {
        event.preventDefault();
        event.stopImmediatePropagation();
      }
    },
    { capture: true }
  );
}

function readJson<T>(text: string | undefined): T | null {
  try {
    return text ? (JSON.parse(text) as T) : null;
  } catch {
    return null;
  }
}

function readSupply({ resources, presets }: DOMStringMap): Supply | null {
  const offered = readJson<Resources>(resources);
  const checked = readJson<PresetCheck>(presets);
  return (
    offered && {
      ...offered,
      presets: checked?.presets ?? [],
      groups: checked?.resource_groups ?? []
    }
  );
}

/** An address of the Hub, whose page this is; it answers only what carries its token. */
function withToken(address: string, query: string[][] = []): string {
  const { jhdata } = window as { jhdata?: { xsrf_token?: string } };
  const token = ['_xsrf', jhdata?.xsrf_token ?? ''];
  return `${address}?${new URLSearchParams([...query, token]).toString()}`;
}

function asker(address: string | undefined): AskFirst | undefined {
  if (!address) {
    return undefined;
  }
  return async (spec, signal) => {
    const response = await fetch(withToken(address), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
      body: JSON.stringify(spec),
      signal
    });
    return response.ok ? ((await response.json()) as DryRun) : null;
  };
}

function finder(address: string | undefined): FindFolders | undefined {
  if (!address) {
    return undefined;
  }
  return async ({ search, after, folders = [] }, signal) => {
    const query = folders.map(folder => ['folder', folder]);
    for (const [name, value] of Object.entries({ search, after })) {
      if (value) {
        query.push([name, value]);
      }
    }
    const headers = { Accept: 'application/json' };
    const response = await fetch(withToken(address, query), { headers, signal });
    if (!response.ok) {
      throw new Error(`${response.status} ${response.statusText}`);
    }
    return (await response.json()) as FolderPage;
  };
}

/** What was chosen before, or what a link to this page says instead. */
function readGiven({ options, serverName }: DOMStringMap): GivenSpec {
  const hash = new URLSearchParams(window.location.hash.slice(1));
  const chosen = readJson<GivenSpec>(hash.get('spec') ?? '');
  const given = chosen ?? readJson<GivenSpec>(options) ?? {};
  const linked = hash.getAll('mounts');
  return {
    ...(serverName ? { name: serverName } : {}),
    ...given,
    mounts: [...(given.mounts ?? []), ...linked]
  };
}

async function start(place: HTMLElement): Promise<void> {
  const supply = readSupply(place.dataset);
  if (!supply) {
    return; // the service did not answer; the page says so already
  }
  const given = readGiven(place.dataset);
  const language = pickLanguage([
    place.dataset.lang,
    document.documentElement.lang === 'en' ? null : document.documentElement.lang,
    ...navigator.languages
  ]);
  const translator = await createTranslator(language, ['launch']);
  const field = specField(place);
  const handle = createRef<LaunchFormHandle>();
  const form = place.closest('form');
  if (form) {
    guard(form, () => handle.current?.validate() ?? true);
  }
  const ask = asker(place.dataset.dryRun);
  const find = finder(place.dataset.folders);
  sayAround(document, translator, language);
  place.lang = language;
  place.replaceChildren();
  createRoot(place).render(
    <I18nextProvider i18n={translator}>
      <LaunchForm
        ref={handle}
        supply={supply}
        given={given}
        language={language}
        ask={ask}
        find={find}
        onChange={spec => {
          field.value = JSON.stringify(spec);
        }}
      />
    </I18nextProvider>
  );
}

const place = document.getElementById('backendai-spawn');
if (place) {
  void start(place);
}

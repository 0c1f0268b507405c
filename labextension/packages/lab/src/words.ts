/** What JupyterLab's own surfaces say of us: its menus, launcher, tabs and status bar. */
import english from '@backendai/ui/i18n/en/lab.json';

type Words = (typeof english)['lab'];
export type Word = keyof Words;

const OTHERS: Record<string, () => Promise<{ default: { lab: Words } }>> = {
  ko: () => import('@backendai/ui/i18n/ko/lab.json'),
  ja: () => import('@backendai/ui/i18n/ja/lab.json'),
  th: () => import('@backendai/ui/i18n/th/lab.json')
};

let words: Words = english.lab;

/** Say something; `{{name}}` and the like are filled in. */
export function say(word: Word, fields: Record<string, string | number> = {}): string {
  return words[word].replace(/{{(\w+)}}/g, (_, name: string) => String(fields[name] ?? ''));
}

/** Speak the language of *tag* (`ko_KR`) from now on; English for those we do not. */
export async function speak(tag: string): Promise<void> {
  const load = OTHERS[tag.toLowerCase().split(/[-_]/)[0] ?? ''];
  words = load ? (await load()).default.lab : english.lab;
}

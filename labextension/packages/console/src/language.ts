import { pickLanguage, type Language } from '@backendai/ui';

const KEY = 'bai-language';

/** The language chosen here before, else the browser's. */
export function startLanguage(): Language {
  return pickLanguage([stored(), ...navigator.languages]);
}

export function rememberLanguage(language: Language): void {
  try {
    localStorage.setItem(KEY, language);
  } catch {
    // A browser that keeps nothing still speaks the language until the page is left.
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

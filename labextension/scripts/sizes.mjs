/**
 * Fails when what a page loads first has grown past its budget (bytes, gzipped).
 *
 * Of the console that is everything a browser fetches that has nothing yet: the page, its
 * code and style, the words of the longest language, the icon, what the service answers.
 * `tests/e2e/ui/test_first_load.py` measures the same on the wire.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const KIB = 1024;
const path = relative => fileURLToPath(new URL(relative, import.meta.url));
const consoleFolder = path('../../backendai_hub/static/console');
const labFolder = path('../backendai_lab/labextension/static');

const gzipped = file => gzipSync(readFileSync(file), { level: 9 }).length;

/** Every file a module loads before it runs, itself included. */
function closure(file, seen = new Set()) {
  if (!seen.has(file)) {
    seen.add(file);
    const text = readFileSync(file, 'utf8');
    for (const [, , name] of text.matchAll(/(from|import)\s*["'](\.{1,2}\/[^"']+)["']/g)) {
      closure(join(file, '..', name), seen);
    }
  }
  return seen;
}

const START = '../ui/src/start/StartPage.tsx';
const AREAS = ['base', 'work'];

/** What comes with the console's first page in *language*, besides the page itself. */
function firstLoad(language) {
  const html = readFileSync(join(consoleFolder, 'index.html'), 'utf8');
  const named = [...html.matchAll(/__PREFIX__static\/console\/([^"]+)"/g)].map(
    ([, name]) => name
  );
  const manifest = JSON.parse(readFileSync(join(consoleFolder, '.vite/manifest.json'), 'utf8'));
  // English has the words of every page built in.
  const areas = AREAS.filter(area => language !== 'en' || area !== 'base');
  const parts = [START, ...areas.map(area => `../ui/src/i18n/${language}/${area}.json`)];
  const files = new Set(named.map(name => join(consoleFolder, name)));
  for (const name of parts.map(part => manifest[part].file)) {
    closure(join(consoleFolder, name), files);
  }
  return [...files];
}

/** What goes over the wire with every file besides its bytes. */
const HEADERS = 450;
/** The page with all its headers, and what its three questions are answered. */
const ANSWERED = 2500 + 6000;

function onTheWire(files) {
  return ANSWERED + files.reduce((sum, file) => sum + gzipped(file) + HEADERS, 0);
}

function longestFirstLoad() {
  const loads = ['en', 'ko', 'ja', 'th'].map(firstLoad);
  return loads.reduce((a, b) => (onTheWire(a) < onTheWire(b) ? b : a));
}

/** What JupyterLab loads at its start: everything that is not the lazy page. */
function labStart() {
  const names = readdirSync(labFolder).filter(name => name.endsWith('.js'));
  const remote = names.filter(name => name.startsWith('remoteEntry'));
  const plugin = names.filter(name =>
    readFileSync(join(labFolder, name), 'utf8').includes('@backendai/lab:plugin')
  );
  return [...new Set([...remote, ...plugin])].map(name => join(labFolder, name));
}

const BUDGETS = [
  {
    name: 'console, everything at first load',
    files: longestFirstLoad(),
    measure: onTheWire,
    most: 200_000
  },
  {
    name: 'launch form',
    files: [...closure(join(consoleFolder, 'spawn.js')), join(consoleFolder, 'spawn.css')],
    most: 90 * KIB
  },
  { name: 'JupyterLab, start', files: labStart(), most: 15 * KIB }
];

const inAll = files => files.reduce((sum, file) => sum + gzipped(file), 0);

for (const { name, files, measure = inAll, most } of BUDGETS) {
  const size = measure(files);
  const kib = bytes => (bytes / KIB).toFixed(1);
  const fills = `${kib(size)} of ${kib(most)} KiB (${size} of ${most} bytes)`;
  process.stdout.write(`${name}: ${fills} in ${files.length} files\n`);
  if (size > most) {
    process.exitCode = 1;
  }
}

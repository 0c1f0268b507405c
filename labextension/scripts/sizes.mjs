/** Fails when what a page loads first has grown past its budget (bytes, gzipped). */
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

function firstLoad() {
  const html = readFileSync(join(consoleFolder, 'index.html'), 'utf8');
  const named = [...html.matchAll(/__PREFIX__static\/console\/([^"]+\.(?:js|css))"/g)];
  const files = new Set(named.map(([, name]) => join(consoleFolder, name)));
  for (const file of [...files].filter(name => name.endsWith('.js'))) {
    closure(file, files);
  }
  return [...files];
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
  { name: 'console, first load', files: firstLoad(), most: 200 * KIB },
  {
    name: 'launch form',
    files: [...closure(join(consoleFolder, 'spawn.js')), join(consoleFolder, 'spawn.css')],
    most: 90 * KIB
  },
  { name: 'JupyterLab, start', files: labStart(), most: 15 * KIB }
];

for (const { name, files, most } of BUDGETS) {
  const size = files.reduce((sum, file) => sum + gzipped(file), 0);
  const kib = bytes => (bytes / KIB).toFixed(1);
  process.stdout.write(`${name}: ${kib(size)} of ${kib(most)} KiB in ${files.length} files\n`);
  if (size > most) {
    process.exitCode = 1;
  }
}

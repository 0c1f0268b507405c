/**
 * Notes beside the built pages which sources they were built from, so that an
 * installation knows whether they are current. `hatch_build.py` computes the same.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const stamp = join(root, '../backendai_hub/static/console/build.json');
const SINGLE = ['package.json', 'package-lock.json', 'tsconfig.base.json'];
const GENERATED = /(^|\/)(node_modules|lib|dist)\//;

const below = folder =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(root.length).replaceAll('\\', '/'));

const files = [...SINGLE, ...below('scripts'), ...below('packages')].filter(
  name => !GENERATED.test(name) && !name.endsWith('.tsbuildinfo')
);
const digest = createHash('sha256');
for (const name of files.sort((a, b) => (a < b ? -1 : 1))) {
  digest
    .update(`${name}\0`)
    .update(readFileSync(join(root, name)))
    .update('\0');
}
writeFileSync(stamp, `${JSON.stringify({ sources: digest.digest('hex') })}\n`);

/** Writes .br and .gz beside every text file of the console, once for all requests. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const folder = fileURLToPath(new URL('../../backendai_hub/static/console', import.meta.url));
const TEXT = /\.(js|css|svg|json)$/;

for (const name of readdirSync(folder, { recursive: true })) {
  if (!TEXT.test(name)) {
    continue; // the page itself is filled in for every answer
  }
  const file = join(folder, name);
  const text = readFileSync(file);
  const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  writeFileSync(`${file}.br`, brotliCompressSync(text, { params: quality }));
  writeFileSync(`${file}.gz`, gzipSync(text, { level: 9 }));
}

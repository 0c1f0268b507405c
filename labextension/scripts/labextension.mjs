/** Builds the JupyterLab extension as `jupyter-builder build` does, without Python. */
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const extension = fileURLToPath(new URL('../packages/lab', import.meta.url));
const { resolve } = createRequire(`${extension}/package.json`);

const { status, error } = spawnSync(
  process.execPath,
  [
    resolve('@jupyter/builder/lib/build-labextension.js'),
    '--core-package-file',
    // What JupyterLab itself brings, and therefore no extension needs to.
    createRequire(resolve('@jupyter/builder')).resolve(
      '@jupyterlab/core-meta/core.package.json'
    ),
    extension
  ],
  { cwd: extension, stdio: 'inherit' }
);
if (error) {
  throw error;
}
process.exitCode = status ?? 1;

import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

/** Where the service serves our files, below its prefix. */
const ASSETS = 'static/console/';

export default defineConfig({
  plugins: [react()],
  root: path('.'),
  html: { cspNonce: '__CSP_NONCE__' },
  build: {
    outDir: path('../../../backendai_hub/static/console'),
    emptyOutDir: true,
    target: 'es2022',
    // Inlined files would be data: URLs, which the policy forbids.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: { index: path('index.html'), spawn: path('src/spawn.tsx') },
      output: {
        // JupyterHub's page names these; everything else is named by its content.
        entryFileNames: chunk =>
          chunk.name === 'spawn' ? 'spawn.js' : 'assets/[name]-[hash].js',
        chunkFileNames: 'assets/[name]-[hash].js',
        assetFileNames: asset =>
          asset.names.includes('spawn.css') ? 'spawn.css' : 'assets/[name]-[hash][extname]'
      }
    }
  },
  experimental: {
    // The page is served at many paths, so it names its files by the prefix; files
    // find each other where they lie.
    renderBuiltUrl: (file, { hostType }) =>
      hostType === 'html' ? `__PREFIX__${ASSETS}${file}` : { relative: true }
  }
});

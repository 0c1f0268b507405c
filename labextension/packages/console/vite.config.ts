import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

/** Where the service serves our files, below its prefix. */
const ASSETS = 'static/console/';

/**
 * What comes with the first page is two files, and what almost every other page needs a
 * few more: a hundred small ones would each cost a way to the service and back. Nothing
 * that only other pages need comes along with the first.
 */
const LIBRARIES =
  /node_modules\/(react|react-dom|scheduler|@mui|@emotion|stylis|i18next|react-i18next|wouter|openapi-fetch|@babel|clsx)\//;
const FIRST: '$initial'[] = ['$initial'];
const TOGETHER = [
  { name: 'vendor', tags: FIRST, test: /node_modules\/(?!lucide-react\/)/ },
  { name: 'first', tags: FIRST, test: /node_modules\/lucide-react\/|packages\// },
  { name: 'work', minShareCount: 2, test: /packages\/ui\/src\/(sessions|data\/sharing)\// },
  { name: 'libraries', minShareCount: 4, test: LIBRARIES },
  { name: 'icons', minShareCount: 3, test: /node_modules\/lucide-react\// },
  {
    name: 'kit',
    minShareCount: 4,
    test: /packages\/(api\/src|ui\/src\/(kit|i18n\/[a-zA-Z]+\.tsx?|[a-zA-Z]+\.tsx?))/
  }
];

/** The launch form stands on JupyterHub's page, and shares nothing with the console. */
const isSpawn = (mode: string): boolean => mode === 'spawn';

export default defineConfig(({ mode }) => ({
  plugins: [react()],
  root: path('.'),
  html: { cspNonce: '__CSP_NONCE__' },
  build: {
    outDir: path('../../../backendai_hub/static/console'),
    emptyOutDir: !isSpawn(mode),
    // Which file holds which page: `scripts/sizes.mjs` adds up what the first one takes.
    manifest: !isSpawn(mode),
    target: 'es2022',
    // Inlined files would be data: URLs, which the policy forbids.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: isSpawn(mode) ? path('src/spawn.tsx') : path('index.html'),
      output: {
        ...(isSpawn(mode) ? {} : { advancedChunks: { groups: TOGETHER } }),
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
}));

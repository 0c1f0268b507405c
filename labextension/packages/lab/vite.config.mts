import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

/* Only our own TypeScript is joined here; JupyterLab's builder does the rest. */
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: path('lib'),
    target: 'es2022',
    minify: false,
    lib: { entry: path('src/index.ts'), formats: ['es'], fileName: () => 'index.js' },
    rolldownOptions: {
      external: id => /^[@a-z]/.test(id) && !id.startsWith('@backendai/')
    }
  }
});

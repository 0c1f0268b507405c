import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['packages/*/src/**/*.test.{ts,tsx}'],
    environment: 'node',
    // Machines that test other things at the same time take their time.
    testTimeout: 30_000
  }
});

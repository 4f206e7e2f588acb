import { totalmem } from 'node:os';
import { defineConfig } from 'vitest/config';

/** What a file of cluster tests needs at most, with its control planes and kubelets (bytes). */
const OF_A_FILE = 3 * 2 ** 30;

// What broke is said in full, wherever a report shows a message alone.
const chaiConfig = { truncateThreshold: 0 };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          chaiConfig,
          include: ['test/**/*.test.ts'],
          exclude: [
            'test/cluster/**',
            'test/faults/**',
            'test/fuzz/**',
            'test/long/**',
            'test/soak/**',
            'test/page/**',
          ],
          testTimeout: 20_000,
          hookTimeout: 30_000,
          // They wait more than they compute: vitest's own choice, one on two cores, took more than twice as long.
          maxWorkers: 4,
        },
      },
      {
        test: {
          name: 'cluster',
          chaiConfig,
          include: ['test/cluster/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 300_000,
          // Each file has clusters of its own, and two of them wait for more than a third of the time.
          maxWorkers: totalmem() < 4 * OF_A_FILE ? 2 : 3,
          pool: 'forks',
        },
      },
      {
        test: {
          name: 'fuzz',
          chaiConfig,
          include: ['test/fuzz/**/*.test.ts'],
          pool: 'forks',
          // What takes memory without bounds ends the run.
          execArgv: ['--max-old-space-size=400'],
        },
      },
      ...['faults', 'long', 'page', 'soak'].map((name) => ({
        test: {
          name,
          chaiConfig,
          include: [`test/${name}/**/*.test.ts`],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          fileParallelism: false,
          pool: 'forks' as const,
        },
      })),
    ],
  },
});

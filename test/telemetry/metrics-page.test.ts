import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { describeMetrics, metricsPage } from '../../hack/metrics-page.ts';

const SOURCES = new URL('../../src/', import.meta.url);

describe('the page of metrics', () => {
  it('has a row for every metric', async () => {
    const page = await metricsPage();
    for (const { name, labels } of await describeMetrics()) {
      const row = page.split('\n').find((line) => line.startsWith(`| \`${name}\` |`));
      expect([name, row]).toEqual([name, expect.any(String)]);
      for (const label of labels) expect(row).toContain(`\`${label}\``);
    }
  });

  it('knows every metric that is made anywhere in the code', async () => {
    const known = new Set((await describeMetrics()).map(({ name }) => name));
    const files = await readdir(SOURCES, { recursive: true });
    let found = 0;
    for (const file of files.filter((name) => name.endsWith('.ts'))) {
      const text = await readFile(new URL(file, SOURCES), 'utf8');
      if (!/from 'prom-client'/.test(text)) continue;
      for (const [, name = ''] of text.matchAll(/'((?:kube|spillway|workqueue)_[a-z_]+)'/g)) {
        found += 1;
        expect([file, name, known.has(name)]).toEqual([file, name, true]);
      }
    }
    expect(found).toBeGreaterThan(20);
  });

  it('says what each metric means, in a sentence', async () => {
    for (const { name, help } of await describeMetrics())
      expect([name, help]).toEqual([name, expect.stringMatching(/^\S.{9,}\.$/)]);
  });
});

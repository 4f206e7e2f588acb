import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import axe from 'axe-core';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { browserPath } from '../../hack/browser.ts';
import { startFleetHost, type FleetHost } from '../fixtures/fleet-host.ts';
import { fleetWorld } from '../fixtures/fleet-world.ts';
import { openPage, type OpenPage } from '../fixtures/open-page.ts';

/** The page as a person has it: in a real browser, with the server that `kubectl spillway ui` starts. */
const dir = mkdtempSync(join(tmpdir(), 'spillway-page-'));
const kubeconfig = join(dir, 'config');
const path = browserPath();
/** As the terminal of these tests has it. */
const NOW = Date.parse('2026-03-01T12:00:00Z');
const NETWORK_CHANGED = 'ERR_NETWORK_CHANGED';
let host: FleetHost;
let run: OpenPage;
let browser: Browser;
/** What went wrong in pages, and what they asked of others. */
let complaints: string[] = [];

describe.skipIf(path === undefined)('the page', () => {
  beforeAll(async () => {
    host = await startFleetHost(fleetWorld(NOW));
    host.writeKubeconfig(kubeconfig, 'production');
    run = await openPage(kubeconfig);
    // As root, as in containers, it does not start with a sandbox of its own.
    browser = await chromium.launch({ executablePath: path ?? '', args: ['--no-sandbox'] });
  });
  beforeEach(() => {
    host.world = fleetWorld(NOW);
    host.forbidden.clear();
    complaints = [];
  });
  afterAll(async () => {
    await browser?.close();
    await run?.end();
    await host?.server.close();
    rmSync(dir, { recursive: true, force: true });
  });

  async function open(options: BrowserContextOptions = {}, url = run.url): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1240, height: 900 }, reducedMotion: 'reduce', ...options });
    const { origin } = new URL(url);
    page.on('console', (said) => {
      if (['error', 'warning'].includes(said.type()) && !said.text().includes(NETWORK_CHANGED))
        complaints.push(said.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => {
      if (!request.url().startsWith(`${origin}/`)) complaints.push(`asked ${request.url()}`);
    });
    // Where network interfaces come and go, as with clusters beside this, the browser gives up what is under way.
    await page.goto(url).catch(async (error: unknown) => {
      if (!String(error).includes(NETWORK_CHANGED)) throw error;
      await page.goto(url);
    });
    await page.getByRole('heading', { name: 'Fleet' }).waitFor();
    return page;
  }

  interface Violation {
    id: string;
    nodes: { html: string; failureSummary: string }[];
  }

  async function violations(page: Page): Promise<string[]> {
    await page.evaluate(axe.source);
    const found = await page.evaluate<Violation[]>('axe.run().then(({ violations }) => violations)');
    return found.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary}`),
    );
  }

  test('shows the fleet, its guards, workloads and moves, and asks nobody else', async () => {
    const page = await open();
    expect(page.url()).not.toContain('token');
    expect(await page.title()).toBe('Spillway');
    const frankfurt = page.getByRole('article', { name: 'member frankfurt' });
    expect(await frankfurt.innerText()).toMatch(/frankfurt\s+ready\s+hetzner · eu-central .*\s+24 running, 3 starting/);
    expect(await frankfurt.getByRole('meter', { name: 'CPU' }).getAttribute('aria-valuetext')).toBe('45 of 64');
    expect(await page.getByRole('button', { name: 'Deletions held back' }).innerText()).toMatch(/^1\s/);
    expect(await page.getByRole('row', { name: /web/ }).innerText()).toMatch(/here 11\s+frankfurt 21\s+oregon 7/);
    expect(await page.getByRole('region', { name: 'Moves' }).innerText()).toMatch(/search-\S+ leaves singapore/);
    expect(complaints).toEqual([]);
  });

  test('shows what clusters say as text', async () => {
    const hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
    const [first] = host.world.events;
    if (first !== undefined) host.world.events = [{ ...first, message: hostile }];
    const page = await open();
    await page.getByText(hostile).waitFor();
    expect(await page.title()).toBe('Spillway');
    expect(complaints).toEqual([]);
  });

  test('follows what changes, and remembers where pods were', async () => {
    const page = await open();
    host.world.pods = host.world.pods.map((pod) =>
      pod.metadata.name.startsWith('nightly') ? { ...pod, spec: { ...pod.spec, nodeName: 'frankfurt' } } : pod,
    );
    await page.getByRole('article', { name: 'member frankfurt' }).getByText('28 running').waitFor();
    await page.getByRole('link', { name: 'nightly', exact: true }).click();
    const sheet = page.getByRole('dialog', { name: 'shop/Deployment/nightly' });
    await sheet.getByText('1 change since').click();
    expect(await sheet.getByRole('figure').innerText()).toMatch(/frankfurt 4\s+\S+ basement 4/);
    expect(complaints).toEqual([]);
  });

  test('is used by keyboard alone', async () => {
    const page = await open();
    const focused = async (): Promise<string> => await page.evaluate('document.activeElement.textContent.trim()');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to the fleet');
    await page.keyboard.press('Tab');
    await page.keyboard.type('shop/nobody');
    await page.keyboard.press('Enter');
    const sheet = page.getByRole('dialog', { name: 'Why shop/nobody' });
    await sheet.getByText('"nobody" not found').waitFor();
    await page.keyboard.press('Escape');
    await sheet.waitFor({ state: 'detached' });
    expect(await page.evaluate('document.activeElement.id')).toBe('ask-why');
    // Guards open in their place, and close again.
    const guard = page.getByRole('button', { name: 'Pods held back' });
    await guard.focus();
    await page.keyboard.press('Enter');
    expect(await guard.getAttribute('aria-expanded')).toBe('true');
    await page.keyboard.press('Tab');
    const [, asked = ''] =
      /why (\S+)\?/.exec(await page.getByRole('link', { name: /^why shop\/reports/ }).innerText()) ?? [];
    await page.getByRole('link', { name: `why ${asked}` }).focus();
    await page.keyboard.press('Enter');
    const why = page.getByRole('dialog', { name: `Why ${asked}` });
    await why.getByText('create the Secret').first().waitFor();
    // The focus does not leave what is open.
    for (let presses = 0; presses < 6; presses += 1) await page.keyboard.press('Tab');
    expect(
      await page.evaluate(
        'document.activeElement === document.body || document.activeElement.closest("dialog") !== null',
      ),
    ).toBe(true);
    // The browser says why it has no answer to 404 in its own words.
    expect(complaints.filter((one) => !one.includes('404'))).toEqual([]);
  });

  test('leads from a workload to one of its pods, and back by the button of the browser', async () => {
    const page = await open();
    await page.getByRole('link', { name: 'search', exact: true }).click();
    await page
      .getByRole('link', { name: /^why shop\/search/ })
      .first()
      .click();
    await page
      .getByRole('dialog', { name: /^Why shop\/search/ })
      .getByRole('heading', { name: 'kubelet' })
      .waitFor();
    await page.goBack();
    await page.getByRole('dialog', { name: 'shop/Deployment/search' }).waitFor();
    await page.goBack();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
  });

  test.each(['light', 'dark'] as const)('has nothing that keeps people out: %s', async (colorScheme) => {
    const page = await open({ colorScheme });
    const [red = 0] =
      /\d+/.exec(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor'))?.map(Number) ?? [];
    expect(red < 128).toBe(colorScheme === 'dark');
    await page.getByRole('button', { name: 'Deletions held back' }).click();
    expect(await violations(page)).toEqual([]);
    await page.getByRole('link', { name: 'web', exact: true }).click();
    await page.getByRole('dialog').getByText('Places over time').waitFor();
    expect(await violations(page)).toEqual([]);
    await page
      .getByRole('link', { name: /^why shop\/web/ })
      .first()
      .click();
    await page.getByRole('dialog', { name: /^Why/ }).getByRole('heading', { name: 'Cluster by cluster' }).waitFor();
    expect(await violations(page)).toEqual([]);
  });

  test('fits a narrow window, and one with many members', async () => {
    const [first] = host.world.members;
    host.world.members = Array.from({ length: 40 }, (_, at) => ({
      ...first,
      metadata: { name: `member-with-a-rather-long-name-${at}` },
    }));
    const page = await open({ viewport: { width: 360, height: 700 } });
    await page.getByRole('article', { name: /-39$/ }).waitFor();
    expect(await page.getByRole('article').count()).toBe(41);
    expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
    expect(await violations(page)).toEqual([]);
  });

  test('names the rights that are missing', async () => {
    host.forbidden = new Set(['nodes', 'placementpolicies', 'clusterplacementpolicies']);
    const other = await openPage(kubeconfig);
    const page = await open({}, other.url);
    await page.getByText('You may not list nodes, list placementpolicies.spillway.dev').waitFor();
    expect(await page.getByRole('article', { name: 'this cluster' }).innerText()).toContain('not known to you');
    expect(await violations(page)).toEqual([]);
    expect(await other.end()).toBe(130);
    await page.getByText('stale').waitFor();
    await page.getByRole('alert').getByText('kubectl spillway ui does not answer').waitFor();
  });

  test.runIf(process.env['PAGE_PICTURES'] === '1')('has its picture taken, for docs/', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await open({ colorScheme });
      await page.screenshot({
        path: `docs/pictures/ui-${colorScheme}.png`,
        clip: { x: 0, y: 0, width: 1240, height: 860 },
      });
      if (colorScheme === 'dark') continue;
      await page.getByRole('button', { name: 'Pods held back' }).click();
      await page.getByRole('link', { name: /^why shop\/reports/ }).click();
      await page.getByText('create the Secret').first().waitFor();
      await page.screenshot({ path: 'docs/pictures/ui-why.png' });
    }
  });
});

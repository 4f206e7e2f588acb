import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import {
  configurationIn,
  DEFAULT_CHOICES,
  installation,
  shippedConfiguration,
  type Choices,
  markOf,
} from '../../src/cli/installation.ts';
import { begun, inventoryOf, readInventory, type Inventory } from '../../src/cli/inventory.ts';
import { editedConfiguration } from '../../src/cli/manager-configuration.ts';
import { nameOf } from '../../src/cli/known-kinds.ts';
import type { Viewer } from '../../src/cli/viewer.ts';

const WEBHOOK: Choices = { ...DEFAULT_CHOICES, admission: 'Webhook', hostIdentity: 'ServiceAccount' };
const SHIPPED = shippedConfiguration(DEFAULT_CHOICES);
const EDITED = SHIPPED.replace('SelfSigned', 'Csr');

const withText = (text: string | undefined): Pick<Viewer, 'tryGet'> => ({
  tryGet: <T>() =>
    Promise.resolve((text === undefined ? undefined : { metadata: {}, data: { 'config.yaml': text } }) as T),
});
const installed = (choices: Choices, ...shipped: string[]): Inventory => ({
  version: '0.0.1',
  choices,
  former: [],
  objects: [],
  configurations: shipped.map(markOf),
});
const edited = async (text: string | undefined, before: Inventory | undefined, choices = DEFAULT_CHOICES) =>
  await editedConfiguration(withText(text), before, choices);

describe('the configuration of the manager', () => {
  it.each([
    ['of this version', SHIPPED, installed(DEFAULT_CHOICES, SHIPPED)],
    ['of this version, of which nothing is remembered', SHIPPED, undefined],
    ['of other choices', SHIPPED, installed(DEFAULT_CHOICES)],
    ['that a former version wrote', 'logLevel: info\n', installed(DEFAULT_CHOICES, 'logLevel: info\n')],
    ['that is not there', undefined, installed(DEFAULT_CHOICES, SHIPPED)],
  ])('%s makes place for the one that is shipped', async (_which, text, before) => {
    expect(await edited(text, before, WEBHOOK)).toBeUndefined();
    expect(await edited(text, before)).toBeUndefined();
  });

  it.each([
    ['an edited one', EDITED, installed(DEFAULT_CHOICES, SHIPPED)],
    ['an edited one of a version that remembered nothing', EDITED, installed(DEFAULT_CHOICES)],
    ['one that was applied by hand', 'logLevel: debug\n', undefined],
  ])('stays to the letter: %s', async (_which, text, before) => {
    expect(await edited(text, before)).toBe(text);
  });

  it('has what is chosen beside what was edited, and loses what is not chosen any more', async () => {
    const own = `${EDITED}admission:\n  webhook:\n    port: 9999\n`;
    const chosen = (await edited(own, installed(DEFAULT_CHOICES, SHIPPED), WEBHOOK)) ?? '';
    expect(parse(chosen)).toEqual({
      ...(parse(own) as object),
      hostIdentity: 'ServiceAccount',
      admission: {
        schedulerName: 'spillway-scheduler',
        splitNodeConstraints: true,
        webhook: { enabled: true, port: 9999 },
      },
    });
    const back = await edited(chosen, installed(WEBHOOK, shippedConfiguration(WEBHOOK)));
    expect(parse(back ?? '')).toEqual(parse(own));
  });

  it('is told from an edited one, and has what is chosen, also after an upgrade that did not come to its end', async () => {
    const former = installed(WEBHOOK, 'logLevel: info\n');
    const unfinished = begun(former, installed(DEFAULT_CHOICES, SHIPPED));
    expect(unfinished).toMatchObject({ choices: DEFAULT_CHOICES, former: [WEBHOOK] });
    for (const text of ['logLevel: info\n', shippedConfiguration(WEBHOOK), SHIPPED])
      expect(await edited(text, unfinished)).toBeUndefined();
    const own = `${EDITED}logLevel: debug\n`;
    const before = (await edited(own, installed(DEFAULT_CHOICES, SHIPPED), WEBHOOK)) ?? '';
    expect(before).toContain('webhook');
    for (const text of [before, own]) expect(parse((await edited(text, unfinished)) ?? '')).toEqual(parse(own));
  });

  it.each(['a: [', 'text', '- list\n', ''])('stops everything where it cannot be read: %j', async (broken) => {
    await expect(edited(broken, installed(DEFAULT_CHOICES, SHIPPED))).rejects.toThrow(
      'ConfigMap spillway-system/spillway-manager cannot be read, and nothing was done',
    );
  });

  it('is read by new pods when it was edited, and not again while it stays as it is', () => {
    const of = (text?: string) => {
      const objects = new Map(installation(DEFAULT_CHOICES, text).map((object) => [nameOf(object), object]));
      const manager = objects.get('deployment.apps/spillway-manager') as unknown as {
        spec: { template: { metadata: { annotations?: Record<string, string> } } };
      };
      const configMap = objects.get('configmap/spillway-manager');
      const mark = manager.spec.template.metadata.annotations?.['checksum/config'];
      return { mark, text: configMap === undefined ? undefined : configurationIn(configMap) };
    };
    expect(of()).toEqual({ mark: undefined, text: SHIPPED });
    expect(of(EDITED)).toEqual({ mark: markOf(EDITED), text: EDITED });
  });
});

it('an inventory remembers which configuration was shipped', async () => {
  const host = (inventory: Inventory) =>
    ({ tryGet: () => Promise.resolve(inventoryOf(inventory)) }) as unknown as Viewer;
  const unfinished = { ...installed(WEBHOOK, SHIPPED, 'logLevel: info'), former: [DEFAULT_CHOICES] };
  for (const inventory of [installed(WEBHOOK, SHIPPED), installed(DEFAULT_CHOICES), unfinished])
    expect(await readInventory(host(inventory))).toEqual(inventory);
});

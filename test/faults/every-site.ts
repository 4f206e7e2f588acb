import { expect } from 'vitest';
import { crashRound, type CrashScenario, type CrashSite, siteInWords } from './crash-rounds.ts';
import type { MovesLab } from './moves-lab.ts';

/** A write may come in another order, or wait for another one that is held: so often it is tried to be met. */
const TRIES = 3;

interface Wanted {
  readonly scenario: CrashScenario;
  readonly site: CrashSite;
  readonly tries: number;
}

/** Kills the program at every site of these moves, several of which share each kill. @returns by move, where it was killed */
export async function killAtEverySite(
  lab: MovesLab,
  scenarios: readonly CrashScenario[],
): Promise<ReadonlyMap<CrashScenario, readonly CrashSite[]>> {
  let wanted: Wanted[] = scenarios.flatMap((scenario) =>
    scenario.sites.map((site) => ({ scenario, site, tries: TRIES })),
  );
  const named = [...new Set(wanted.map(({ site }) => site.kind))];
  const reached = new Map<CrashScenario, CrashSite[]>(scenarios.map((scenario) => [scenario, []]));
  for (let round = 1; wanted.length > 0; round++) {
    const now = ofOneRound(wanted);
    wanted = wanted.filter((one) => !now.includes(one));
    const lanes = now.map(({ scenario, site }, lane) => {
      return { scenario, site, namespace: `${scenario.id}-${String(round)}-${String(lane)}` };
    });
    const results = await crashRound(lab, lanes, named);
    for (const [lane, one] of now.entries()) {
      const { scenario, site, tries } = one;
      const isReached = results[lane] === true;
      console.info(`${String(round)}: ${scenario.id} ${siteInWords(site)}${isReached ? '' : ': not reached'}`);
      if (isReached) reached.get(scenario)?.push(site);
      else if (tries > 1) wanted.push({ scenario, site, tries: tries - 1 });
      // Not each move has a second write of a kind; the first one of each has to be met.
      else expect(site.nth, `${scenario.id} ${siteInWords(site)} was never reached`).toBeGreaterThan(1);
    }
  }
  return reached;
}

/** As many as can be held beside each other. */
function ofOneRound(wanted: readonly Wanted[]): Wanted[] {
  const taken: Wanted[] = [];
  for (const one of wanted) {
    const { atOnce = 1, cutsLine = false } = one.scenario;
    const alike = taken.filter(({ scenario }) => scenario === one.scenario).length;
    const isElsewhere = taken.some(({ scenario }) => scenario !== one.scenario && scenario.cutsLine === true);
    if (alike < atOnce && !(cutsLine && isElsewhere)) taken.push(one);
  }
  return taken;
}

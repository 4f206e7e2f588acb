export function percent(share: number): string {
  return Number.isFinite(share) ? `${(share * 100).toFixed(Math.abs(share) < 0.1 ? 1 : 0)} %` : 'without bounds';
}

/** Runs both sides alternately (A B, B A, A B), so that a changing load of the machine favours neither. */
export async function alternately<A, B>(
  rounds: number,
  { bare, relay }: { readonly bare: () => Promise<A>; readonly relay: () => Promise<B> },
): Promise<{ readonly bare: A; readonly relay: B }[]> {
  const measured: { readonly bare: A; readonly relay: B }[] = [];
  for (let round = 0; round < rounds; round++) {
    if (round % 2 === 0) measured.push({ bare: await bare(), relay: await relay() });
    else measured.push({ relay: await relay(), bare: await bare() });
  }
  return measured;
}

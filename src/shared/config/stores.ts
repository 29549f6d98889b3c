import { z } from 'zod';

/** Location of the store. */
export interface StorePlace {
  /** Kind of the store, as /health names it. */
  readonly kind: string;
  /** Value of the variable, which may contain a password. */
  readonly text: string;
  /** Path or URL for people, without a password; null for the store in memory. */
  readonly shown: string | null;
  readonly password: string | null;
  /** Place of the stored data in answers to people who ask for it. */
  readonly dataPlace: string;
  /** Whether several hosts share the store. */
  readonly isShared: boolean;
}

/** Kind of stores, as the configuration sees it. */
export interface StoreFamily extends Pick<StorePlace, 'kind' | 'dataPlace' | 'isShared'> {
  /** Values of MODEL_API_STORE, for error messages. */
  readonly form: string;
  /** Returns null if the text names no store of this kind. */
  parsePlace(text: string): Pick<StorePlace, 'shown' | 'password'> | null;
}

/** Store in memory, which does not survive a restart of the service. A feature may give it more contents. */
export const memoryFamily: StoreFamily = {
  ...{ kind: 'memory', dataPlace: 'memory', isShared: false, form: 'memory' },
  parsePlace: (text) => (text === 'memory' ? { shown: null, password: null } : null),
};

/** Place of the store of a core without features. */
export const memoryPlace: StorePlace = {
  ...{ kind: 'memory', text: 'memory', shown: null, password: null, dataPlace: 'memory', isShared: false },
};

interface FeatureWithStore {
  readonly store?: StoreFamily;
}

/** Returns the kinds of stores of the core and of these features. */
export function storeFamiliesOf(features: readonly FeatureWithStore[]): readonly StoreFamily[] {
  const families = features.flatMap(({ store }) => store ?? []);
  return [memoryFamily, ...families.filter(({ kind }) => kind !== memoryFamily.kind)];
}

/** Returns the schema of MODEL_API_STORE. */
export function storeSchema(families: readonly StoreFamily[]): z.ZodType<StorePlace> {
  const forms = families.map(({ form }) => form);
  const listed = [forms.slice(0, -1).join(', '), forms.at(-1)].filter((part) => part !== '').join(' or ');
  return z.string().transform((text, context): StorePlace => {
    for (const { kind, dataPlace, isShared, parsePlace } of families) {
      const place = parsePlace(text);
      if (place !== null) return { kind, text, ...place, dataPlace, isShared };
    }
    context.addIssue(`must be ${listed}`); // without the value, which may contain a password
    return z.NEVER;
  });
}

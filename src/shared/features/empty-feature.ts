/** Feature without any part. A feature with few parts begins with a copy of it. */
export const emptyFeature = {
  ...{ variables: {}, calls: {}, endpoints: [], requestFields: {}, requestHeaders: {}, logEvents: {}, keyOptions: {} },
  tables: [],
  findFaults: () => [],
  findWarnings: () => [],
  loadPrimary: async () => () => ({ handlers: {} }),
  loadWorker: async () => ({ createPart: () => ({ routes: [] }) }),
};

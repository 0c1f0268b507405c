/** What is certain to be is shown at once, and taken back where it was refused. */
import type { QueryClient, QueryFilters } from '@tanstack/react-query';

/**
 * Show what `update` makes of every cached answer that `filters` choose.
 *
 * Returns how to take it back. What has been heard of meanwhile stays: it knows better
 * than what was there before.
 */
export async function guess<Answer>(
  client: QueryClient,
  filters: QueryFilters,
  update: (answer: Answer) => Answer
): Promise<() => void> {
  // An answer that is on its way is of before.
  await client.cancelQueries(filters);
  const guessed = client
    .getQueriesData<Answer>(filters)
    .flatMap(([key, before]) =>
      before === undefined
        ? []
        : [{ key, before, shown: client.setQueryData<Answer>(key, update(before)) }]
    );
  return () => {
    for (const { key, before, shown } of guessed) {
      if (client.getQueryData(key) === shown) {
        client.setQueryData(key, before);
      }
    }
  };
}

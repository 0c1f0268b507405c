/** The pages of one noun: its list, one of them, and its form. */
import { useQuery } from '@tanstack/react-query';
import { useHost } from '../host';
import { ForbiddenPage, MissingPage } from '../pages/Missing';
import type { PageProps } from '../pages/page';
import { meQuery } from '../queries';
import { NounDetail } from './NounDetail';
import { NounForm } from './NounForm';
import { NounIndex } from './NounIndex';
import { mayCreate, mayWrite, type AnyNoun } from './noun';

export function NounPages({ noun, params }: PageProps & { noun: AnyNoun }): JSX.Element {
  const me = useQuery(meQuery(useHost())).data;
  const { id, verb } = params;
  const writes = me === undefined || mayWrite(noun, me);
  if (id === undefined) {
    return <NounIndex noun={noun} />;
  }
  if (id === 'new' && verb === undefined) {
    return writes && mayCreate(noun, me) ? (
      <NounForm noun={noun} id={null} />
    ) : (
      <ForbiddenPage />
    );
  }
  if (verb === 'edit') {
    return writes ? <NounForm noun={noun} id={id} /> : <ForbiddenPage />;
  }
  return verb === undefined ? <NounDetail noun={noun} id={id} /> : <MissingPage />;
}

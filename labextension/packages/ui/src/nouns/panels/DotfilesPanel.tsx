/** The dotfiles that sessions get from a domain, a project or a keypair. */
import { useQuery } from '@tanstack/react-query';
import { useHost } from '../../host';
import { meQuery } from '../../queries';
import { administers } from '../roles';
import { DotfilesEditor } from './DotfilesEditor';

const panelOf =
  (plural: string) =>
  ({ row }: { row: { id: string } }): JSX.Element => {
    const me = useQuery(meQuery(useHost())).data;
    const writes = me !== undefined && administers(me);
    return <DotfilesEditor of={`/api/${plural}/${row.id}`} writes={writes} />;
  };

export const DotfilesPanel = {
  ofDomain: panelOf('domains'),
  ofProject: panelOf('projects'),
  ofKeypair: panelOf('keypairs')
};

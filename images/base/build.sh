#!/bin/sh
# Makes a small Debian image with Python: images/base/build.sh [NAME]
#
# Needs root, debootstrap and the docker command; nothing is taken from an image
# registry. DEBIAN_MIRROR names another mirror, DEBIAN_SUITE another release.
set -eu
name=${1:-backendai/base:bookworm}
suite=${DEBIAN_SUITE:-bookworm}
mirror=${DEBIAN_MIRROR:-}
packages=ca-certificates,git,iproute2,less,procps,python3,python3-venv,sudo

[ "$(id -u)" = 0 ] || { echo "debootstrap needs root: run this as root" >&2; exit 1; }
for program in debootstrap docker tar; do
    command -v "$program" >/dev/null || { echo "$program is not installed" >&2; exit 1; }
done

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT INT TERM
debootstrap --variant=minbase --include="$packages" "$suite" "$root" ${mirror:+"$mirror"} \
    >"$root.log" ||
    { tail -n 20 "$root.log" >&2; exit 1; }
rm -f "$root.log"
# The mirror debootstrap has used serves updates and security fixes as well.
used=$(awk '{ print $2; exit }' "$root/etc/apt/sources.list")
cat >"$root/etc/apt/sources.list" <<END
deb $used $suite main
deb $used $suite-updates main
deb ${used%/debian}/debian-security $suite-security main
END
# What a container neither reads nor should inherit from the machine that built it.
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* \
    "$root"/usr/share/doc/* "$root"/usr/share/man/* "$root/etc/resolv.conf" \
    "$root/etc/hostname"
tar -C "$root" -c . | docker import -c 'CMD ["/bin/bash"]' - "$name"

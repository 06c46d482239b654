use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

/// Returns whether a host is this machine, by its name or address.
pub(super) fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.to_canonical().is_loopback(),
    }
}

/// Returns whether an address is a public one of the internet.
///
/// IANA's special-purpose registries list the others: this machine, private and local networks,
/// carrier-grade NAT, multicast, documentation, reserved. An IPv6 address that embeds an IPv4
/// address (mapped, compatible, NAT64, 6to4) is public if the embedded address is.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_special = address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        // "This network" (RFC 791 §3.2), which Linux treats as this machine.
        || first == 0
        // Reserved (RFC 1112 §4) and broadcast.
        || first >= 240
        // Carrier-grade NAT (RFC 6598), 100.64.0.0/10.
        || (first == 100 && (64..128).contains(&second))
        // Benchmarks (RFC 2544), 198.18.0.0/15.
        || (first == 198 && (18..20).contains(&second))
        // Protocol assignments (RFC 6890), and relays of 6to4 (RFC 7526).
        || (first, second, third) == (192, 0, 0)
        || (first, second, third) == (192, 88, 99);
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(embedded) = embedded_v4(address) {
        return is_public_v4(embedded);
    }
    let [first, second, ..] = address.segments();
    // IANA assigns only 2000::/3. Of it, 2001::/23 is for protocols (RFC 2928), 2001:db8::/32 and
    // 3fff::/20 are for documentation (RFC 3849, RFC 9637).
    first & 0xe000 == 0x2000
        && !(first == 0x2001 && (second < 0x200 || second == 0xdb8))
        && !(first == 0x3fff && second < 0x1000)
}

fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        // Mapped and compatible (RFC 4291 §2.5.5).
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] => (high, low),
        // NAT64 (RFC 6052 §2.1).
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => (high, low),
        // 6to4 (RFC 3056 §2).
        [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    Some((u32::from(high) << 16 | u32::from(low)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_internet_is_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "192.0.2.1",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "100::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "100.128.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn loopback_is_recognised() {
        for (url, is) in [
            ("http://localhost/", true),
            ("http://LOCALHOST./", true),
            ("http://a.localhost/", true),
            ("http://127.1/", true),
            ("http://[::1]/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://localhost.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(
                is_loopback(&url::Url::parse(url).unwrap().host().unwrap()),
                is,
                "{url}"
            );
        }
    }
}

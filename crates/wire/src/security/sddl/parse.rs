//! Parsing of SDDL.

use core::str::FromStr;

use super::print::{CONTROL_NAMES, DACL_CONTROL, NULL_LIST, SACL_CONTROL};
use super::{FLAGS, ParseSddlError, RIGHTS, SIDS, TYPES};
use crate::access::AccessMask;
use crate::security::{Ace, AceFlags, Acl, DescriptorControl, SecurityDescriptor, Sid};

/// Parses the text form of \[MS-DTYP\] 2.5.1. A descriptor has each of owner, group, DACL and SACL
/// at most once.
impl FromStr for SecurityDescriptor {
    type Err = ParseSddlError;

    fn from_str(text: &str) -> Result<Self, ParseSddlError> {
        let mut parser = Parser { text, at: 0 };
        let mut descriptor = Self {
            control: DescriptorControl::SELF_RELATIVE,
            ..Self::default()
        };
        parser.skip_spaces();
        while !parser.rest().is_empty() {
            parser.part(&mut descriptor)?;
            parser.skip_spaces();
        }
        Ok(descriptor)
    }
}

/// The text and the position of the next character.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error<T>(&self, expected: &'static str) -> Result<T, ParseSddlError> {
        let offset = self.at;
        Err(ParseSddlError { offset, expected })
    }

    /// Skips a text, if it is next.
    fn take(&mut self, wanted: &str) -> bool {
        let is_next = self.rest().starts_with(wanted);
        if is_next {
            self.at += wanted.len();
        }
        is_next
    }

    fn expect(&mut self, wanted: &'static str) -> Result<(), ParseSddlError> {
        match self.take(wanted) {
            true => Ok(()),
            false => self.error(wanted),
        }
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Reads owner, group, DACL or SACL.
    fn part(&mut self, descriptor: &mut SecurityDescriptor) -> Result<(), ParseSddlError> {
        const EXPECTED: &str = "one of O:, G:, D: and S:, each at most once";
        let control = descriptor.control;
        if descriptor.owner.is_none() && self.take("O:") {
            descriptor.owner = Some(self.sid()?);
        } else if descriptor.group.is_none() && self.take("G:") {
            descriptor.group = Some(self.sid()?);
        } else if !control.contains(DescriptorControl::DACL_PRESENT) && self.take("D:") {
            descriptor.control |= DescriptorControl::DACL_PRESENT;
            descriptor.dacl = self.list(DACL_CONTROL, &mut descriptor.control)?;
        } else if !control.contains(DescriptorControl::SACL_PRESENT) && self.take("S:") {
            descriptor.control |= DescriptorControl::SACL_PRESENT;
            descriptor.sacl = self.list(SACL_CONTROL, &mut descriptor.control)?;
        } else {
            return self.error(EXPECTED);
        }
        Ok(())
    }

    /// Reads the flags and entries of a list; `None` for a NULL list.
    fn list(
        &mut self,
        flags: [DescriptorControl; 3],
        control: &mut DescriptorControl,
    ) -> Result<Option<Acl>, ParseSddlError> {
        if self.take(NULL_LIST) {
            return Ok(None);
        }
        let names = || CONTROL_NAMES.iter().zip(flags);
        while let Some((_, flag)) = names().find(|(name, _)| self.take(name)) {
            *control |= flag;
        }
        if self.take(NULL_LIST) {
            return Ok(None);
        }
        let mut list = Acl::new();
        self.skip_spaces();
        while self.rest().starts_with('(') {
            let ace = self.ace()?;
            if !list.push(ace) {
                return self.error("at most 64 KiB of entries");
            }
            self.skip_spaces();
        }
        Ok(Some(list))
    }

    /// Reads `(type;flags;rights;object;inherited object;sid)`. The objects are empty.
    fn ace(&mut self) -> Result<Ace, ParseSddlError> {
        self.expect("(")?;
        let name = self.field();
        let Some((_, ace_type)) = TYPES.iter().find(|(known, _)| *known == name) else {
            return self.error("one of the entry types A, D, AU, ML and SP");
        };
        self.at += name.len();
        self.expect(";")?;
        let flags = self.flags()?;
        self.expect(";")?;
        let mask = self.mask()?;
        self.expect(";")?;
        self.expect(";")?;
        self.expect(";")?;
        let sid = self.sid()?;
        self.expect(")")?;
        Ok(Ace::Basic {
            ace_type: *ace_type,
            flags,
            mask,
            sid,
        })
    }

    /// The text up to the next separator, without a change of the position.
    fn field(&self) -> &'a str {
        let rest = self.rest();
        let end = rest.find([';', ')', '(']).unwrap_or(rest.len());
        &rest[..end]
    }

    fn flags(&mut self) -> Result<AceFlags, ParseSddlError> {
        let mut flags = AceFlags::NONE;
        while !self.field().is_empty() {
            let Some((_, flag)) = FLAGS.iter().find(|(name, _)| self.take(name)) else {
                return self.error("one of the flags OI, CI, NP, IO, ID, SA and FA");
            };
            flags |= *flag;
        }
        Ok(flags)
    }

    /// Reads a number, or names of rights.
    fn mask(&mut self) -> Result<AccessMask, ParseSddlError> {
        const EXPECTED: &str = "names of rights such as FA or FR, or a number of 32 bits";
        let field = self.field();
        if field.starts_with(|first: char| first.is_ascii_digit()) {
            let number = match field.strip_prefix("0x").or(field.strip_prefix("0X")) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => field.parse(),
            };
            let Ok(number) = number else {
                return self.error(EXPECTED);
            };
            self.at += field.len();
            return Ok(AccessMask(number));
        }
        let mut mask = AccessMask::NONE;
        while !self.field().is_empty() {
            let Some((_, right)) = RIGHTS.iter().find(|(name, _)| self.take(name)) else {
                return self.error(EXPECTED);
            };
            mask |= *right;
        }
        Ok(mask)
    }

    /// Reads a SID: S-1-... or two characters.
    fn sid(&mut self) -> Result<Sid, ParseSddlError> {
        const EXPECTED: &str = "a SID such as S-1-5-18 or WD";
        let rest = self.rest();
        if rest.starts_with("S-") || rest.starts_with("s-") {
            let is_part = |c: char| c.is_ascii_hexdigit() || "-xX".contains(c);
            let digits = &rest[2..];
            let end = 2 + digits.find(|c| !is_part(c)).unwrap_or(digits.len());
            // The group, DACL and SACL follow the owner without a space: `S-1-1-0D:`.
            let end = match rest[end..].starts_with(':') {
                true => end - 1,
                false => end,
            };
            let Ok(sid) = rest[..end].parse() else {
                return self.error(EXPECTED);
            };
            self.at += end;
            return Ok(sid);
        }
        match SIDS.iter().find(|(name, _)| self.take(name)) {
            Some((_, sid)) => Ok(*sid),
            None => self.error(EXPECTED),
        }
    }
}

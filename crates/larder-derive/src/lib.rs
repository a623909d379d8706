//! `#[derive(OrderedKey)]` for the crate `larder`: structs and enums as keys of typed tables.
//!
//! | type | term |
//! |---|---|
//! | a struct with one field without a name | the field |
//! | any other struct | a tuple of the fields, in order |
//! | an enum whose variants have no fields | the variant's number, from 0 |
//! | any other enum | `{Number, {Fields…}}` |
//!
//! The terms have the same order as `#[derive(PartialOrd, Ord)]` gives the type: fields from left
//! to right, variants from top to bottom. In Erlang a tuple with fewer elements is always less than
//! one with more. So the fields of a variant are in a separate tuple after its number.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    parse_macro_input, Data, DeriveInput, Error, Fields, GenericParam, Generics, Ident, Result,
};

/// Derives the traits `EncodeKey` and `OrderedKey` of `larder::typed`.
///
/// All fields must be keys, and so must the types that the type is generic over.
#[proc_macro_derive(OrderedKey)]
pub fn ordered_key(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let derived = derive(&input).unwrap_or_else(Error::into_compile_error);
    derived.into()
}

/// The bodies of the functions of the two traits.
struct Bodies {
    encode: TokenStream,
    /// The body of `leaf`, if the key is a single integer, text or the like.
    leaf: Option<TokenStream>,
    decode: TokenStream,
    /// The body of `of_leaf`, likewise.
    of_leaf: Option<TokenStream>,
}

/// Generates the two implementations.
fn derive(input: &DeriveInput) -> Result<TokenStream> {
    // 1. The bodies of the functions depend on the kind of the type.
    let Bodies {
        encode,
        leaf,
        decode,
        of_leaf,
    } = match &input.data {
        Data::Struct(data) => of_struct(&data.fields),
        Data::Enum(data) => of_enum(data)?,
        Data::Union(_) => {
            let why = "a union does not say which of its fields is there, so it is no key";
            return Err(Error::new_spanned(&input.ident, why));
        }
    };
    // 2. Each trait has bounds of its own on the type's parameters.
    let name = &input.ident;
    let (_, arguments, _) = input.generics.split_for_impl();
    let encodes = bound(&input.generics, &quote!(::larder::typed::EncodeKey));
    let (encode_params, _, encode_where) = encodes.split_for_impl();
    let decodes = bound(&input.generics, &quote!(::larder::typed::OrderedKey));
    let (decode_params, _, decode_where) = decodes.split_for_impl();
    // 3. The functions for simple keys are optional. Without them the defaults of the traits apply.
    let leaf = leaf.map(|leaf| {
        quote! {
            #[inline(always)]
            fn leaf(&self) -> ::larder::typed::Leaf<'_> {
                #leaf
            }
        }
    });
    let of_leaf = of_leaf.map(|of_leaf| {
        quote! {
            #[inline(always)]
            fn of_leaf(leaf: ::larder::typed::Leaf<'_>) -> ::core::option::Option<Self> {
                #of_leaf
            }
        }
    });
    Ok(quote! {
        #[automatically_derived]
        impl #encode_params ::larder::typed::EncodeKey for #name #arguments #encode_where {
            #[inline]
            fn encode_key(
                &self,
                out: &mut ::larder::typed::Encoder<'_>,
            ) -> ::core::result::Result<(), ::larder::Error> {
                #encode
                ::core::result::Result::Ok(())
            }
            #leaf
        }

        #[automatically_derived]
        impl #decode_params ::larder::typed::OrderedKey for #name #arguments #decode_where {
            #[inline]
            fn decode_key(
                term: ::larder::typed::TermRef<'_>,
            ) -> ::core::option::Option<Self> {
                #decode
            }
            #of_leaf
        }
    })
}

/// The generics, with the bound that every type parameter is a key.
fn bound(generics: &Generics, key: &TokenStream) -> Generics {
    let mut generics = generics.clone();
    // Lifetimes and constants need no bound.
    let types: Vec<Ident> = generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(param.ident.clone()),
            _ => None,
        })
        .collect();
    let bounds = &mut generics.make_where_clause().predicates;
    for name in types {
        bounds.push(syn::parse_quote!(#name: #key));
    }
    generics
}

/// The bodies for a struct.
fn of_struct(fields: &Fields) -> Bodies {
    let (pattern, names) = pattern(fields);
    let opened = quote!(let Self #pattern = self;);
    // A struct that wraps one value is written as that value. So it has the order of the value, and
    // it can be a simple key, too.
    if let (Fields::Unnamed(_), [only]) = (fields, &names[..]) {
        return Bodies {
            encode: quote! {
                #opened
                ::larder::typed::EncodeKey::encode_key(#only, out)?;
            },
            leaf: Some(quote! {
                #opened
                ::larder::typed::EncodeKey::leaf(#only)
            }),
            decode: quote! {
                ::core::option::Option::Some(Self(::larder::typed::OrderedKey::decode_key(term)?))
            },
            of_leaf: Some(quote! {
                ::core::option::Option::Some(Self(::larder::typed::OrderedKey::of_leaf(leaf)?))
            }),
        };
    }
    // Any other struct is a tuple of its fields, which is compared from left to right.
    let (write, read) = (written(&names), read(&names, &quote!(term)));
    Bodies {
        encode: quote! {
            #opened
            #write
        },
        leaf: None,
        decode: quote! {
            #read
            ::core::option::Option::Some(Self #pattern)
        },
        of_leaf: None,
    }
}

/// The bodies for an enum.
fn of_enum(data: &syn::DataEnum) -> Result<Bodies> {
    // `Ord` compares variants by their discriminants, and keys by their numbers. So other
    // discriminants than the usual ones are refused.
    for variant in &data.variants {
        if let Some((_, value)) = &variant.discriminant {
            let why = "a variant with a value of its own: as a key it has its number, from 0, and \
                       the two may differ in order";
            return Err(Error::new_spanned(value, why));
        }
    }
    // Variants are numbered in the order in which they are written.
    let numbers = 0i64..;
    let names = data.variants.iter().map(|variant| &variant.ident);
    // Without fields, the number alone is the key.
    if data
        .variants
        .iter()
        .all(|variant| matches!(variant.fields, Fields::Unit))
    {
        let (names, numbers): (Vec<_>, Vec<_>) = names.zip(numbers).unzip();
        // An enum without variants has no values, and an empty match.
        let number = match names.is_empty() {
            true => quote!(match *self {}),
            false => quote!(match self { #(Self::#names => #numbers,)* }),
        };
        return Ok(Bodies {
            encode: quote! {
                let number: i64 = #number;
                out.int(number);
            },
            leaf: Some(quote!(::larder::typed::Leaf::Int(#number))),
            decode: quote! {
                match term.as_int()? {
                    #(#numbers => ::core::option::Option::Some(Self::#names),)*
                    _ => ::core::option::Option::None,
                }
            },
            of_leaf: None,
        });
    }
    // With fields, the key is a pair of the number and a tuple of the fields. So the number is
    // compared first.
    let (mut encode, mut decode) = (Vec::new(), Vec::new());
    for (variant, number) in data.variants.iter().zip(numbers) {
        let name = &variant.ident;
        let (pattern, names) = pattern(&variant.fields);
        let (write, read) = (written(&names), read(&names, &quote!(fields)));
        encode.push(quote! {
            Self::#name #pattern => {
                out.int(#number);
                #write
            }
        });
        decode.push(quote! {
            #number => {
                #read
                ::core::option::Option::Some(Self::#name #pattern)
            }
        });
    }
    Ok(Bodies {
        encode: quote! {
            out.begin_tuple(2);
            match self { #(#encode)* }
        },
        leaf: None,
        decode: quote! {
            let pair = term.as_tuple().filter(|pair| pair.arity() == 2)?;
            let fields = pair.get(1)?;
            match pair.get(0)?.as_int()? {
                #(#decode)*
                _ => ::core::option::Option::None,
            }
        },
        of_leaf: None,
    })
}

/// Tokens that are both a pattern and an expression of the fields, and the names of the fields in
/// them.
fn pattern(fields: &Fields) -> (TokenStream, Vec<Ident>) {
    // The names are generated, so that they don't clash with those of the type's own fields.
    let names: Vec<Ident> = (0..fields.len())
        .map(|i| format_ident!("field_{i}"))
        .collect();
    let pattern = match fields {
        Fields::Named(named) => {
            let idents = named.named.iter().map(|field| &field.ident);
            quote!({ #(#idents: #names),* })
        }
        Fields::Unnamed(_) => quote!(( #(#names),* )),
        Fields::Unit => quote!(),
    };
    (pattern, names)
}

/// Code that encodes the fields as a tuple.
fn written(names: &[Ident]) -> TokenStream {
    let count = names.len();
    quote! {
        out.begin_tuple(#count);
        #(::larder::typed::EncodeKey::encode_key(#names, out)?;)*
    }
}

/// Code that decodes the fields from a tuple.
fn read(names: &[Ident], term: &TokenStream) -> TokenStream {
    let count = names.len();
    // A tuple without elements needs no iterator.
    let elements = match count {
        0 => quote!(),
        _ => quote!(let mut elements = tuple.iter();),
    };
    quote! {
        let tuple = #term.as_tuple().filter(|tuple| tuple.arity() == #count)?;
        #elements
        #(let #names = ::larder::typed::OrderedKey::decode_key(elements.next()?)?;)*
    }
}
